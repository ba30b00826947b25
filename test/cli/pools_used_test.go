// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// metricsAPI is a CRD that replaces the metrics API. It has the fields that the plugin reads, so
// that tests can write any metrics.
const metricsAPI = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: nodes.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, test only"}
spec:
  group: metrics.k8s.io
  scope: Cluster
  names: {plural: nodes, singular: node, kind: NodeMetrics, listKind: NodeMetricsList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// describer is a ClusterRole that allows the requests of pools describe, but not to list metrics.
// It is bound to a user, and to the manager's user, as which the proxy's clients act.
const describer = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: describer}
rules:
- {apiGroups: [tidekeeper.dev], resources: [nodepools], verbs: [get, list]}
- {apiGroups: [""], resources: [nodes, pods, events], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: describer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: describer}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: describer}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "` + framework.ManagerUser + `"}
`

// metricsOf returns the manifest of a node's metrics with the given measurement time.
func metricsOf(node string, at time.Time, usage string) string {
	return fmt.Sprintf("---\napiVersion: metrics.k8s.io/v1beta1\nkind: NodeMetrics\nmetadata: {name: %s}\ntimestamp: %q\nwindow: 20s\nusage: %s\n", node, at.UTC().Format(time.RFC3339), usage)
}

// usedOf holds a pool's used resources as shown by describe and by the wide list, both as text and
// as JSON.
type usedOf struct{ Describe, List, DescribeJSON, ListJSON string }

// used returns the used resources that the commands show for the pool, or the errors of commands, such
// as those of a user whose rights are not in force yet.
func used(t *testing.T, c command) (shown usedOf, err error) {
	t.Helper()
	run := func(args ...string) string {
		c.args = append([]string{"pools"}, args...)
		r := c.run(t)
		if r.code != 0 {
			err = errors.Join(err, fmt.Errorf("%v: exit code %d: %s", args, r.code, r.stderr))
		}
		return r.stdout
	}
	describe, list := run("describe", "used"), run("used", "-o", "wide")
	describeJSON, listJSON := run("describe", "used", "-o", "json"), run("used", "-o", "json")
	if err != nil {
		return shown, err
	}
	if line := regexp.MustCompile(`(?m)^Used: +(.*)$`).FindStringSubmatch(describe); line != nil {
		shown.Describe = line[1]
	}
	wide := strings.SplitN(list, "\n", 3)
	if begin := strings.Index(wide[0], "USED"); begin >= 0 {
		shown.List = strings.TrimSpace(wide[1][begin:strings.Index(wide[0], "FITS NOW")])
	}
	var one struct{ Used any }
	if err := json.Unmarshal([]byte(describeJSON), &one); err != nil {
		t.Fatal(err)
	}
	shown.DescribeJSON = encoded(one.Used)
	var all struct{ Items []struct{ Used any } }
	if err := json.Unmarshal([]byte(listJSON), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d pools, %v", len(all.Items), err)
	}
	shown.ListJSON = encoded(all.Items[0].Used)
	return shown, nil
}

// encoded returns a value as JSON, or "" if it is nil.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil || value == nil {
		return ""
	}
	return string(text)
}

// known returns the expected output if the given number of the five nodes have metrics, and the
// metrics add up to the given amounts.
func known(text string, measured int, cpu, memory string) usedOf {
	if measured < 5 {
		text = fmt.Sprintf("at least %s (of %d of 5 nodes)", text, measured)
	}
	data := fmt.Sprintf(`{"measuredNodes":%d,"nodes":5,"resources":{"cpu":%q,"memory":%q}}`, measured, cpu, memory)
	return usedOf{text, text, data, data}
}

// TestPoolsUsed checks that a pool's used resources are shown next to the requested resources, and
// that the output states for which nodes they are unknown.
func TestPoolsUsed(t *testing.T) {
	cluster.StartManager(t, "--status-interval=1s")
	cluster.AddNodes(t, "used", 5, "--labels", "node-role.kubernetes.io/used=")
	cluster.AddNodes(t, "unused", 1)
	cluster.Apply(t, framework.Pool("used"))
	framework.Eventually(t, "the pool has its nodes", func() error {
		return diff("used Healthy 5/5", strings.Join(fields(tide(t, "pools", "used"))[1][:3], " "))
	})
	unknown := func(why string) usedOf { return usedOf{Describe: "not available: " + why, List: "not available"} }
	expect := func(what string, want usedOf, c command) {
		t.Helper()
		// On a busy machine, the metrics may arrive after the plugin has stopped waiting for them.
		framework.Eventually(t, what+" is shown", func() error {
			got, err := used(t, c)
			return cmp.Or(err, diff(want, got))
		})
	}
	expect("not served", unknown("the cluster serves no metrics.k8s.io"), command{})

	// The test cannot start a metrics server, so a CRD with the same group and kind serves the
	// metrics.
	kubectl(t, metricsAPI+"---"+describer, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, metricsAPI+"---"+describer, "delete", "-f", "-") })
	kubectl(t, "", "wait", framework.LongTimeout, "--for=condition=Established", "crd/nodes.metrics.k8s.io")
	now := time.Now()
	var all strings.Builder
	for i := range 5 {
		all.WriteString(metricsOf(fmt.Sprintf("used-%d", i+1), now, `{cpu: "643493076n", memory: 2Gi}`))
	}
	framework.Eventually(t, "metrics can be written", func() error {
		_, err := cluster.Kubectl(all.String()+metricsOf("unused-1", now, "{cpu: 9, memory: 9Gi}"), "apply", "-f", "-")
		return err
	})
	expect("all nodes", known("3.22 CPU, 10Gi memory", 5, "3218m", "10Gi"), command{})
	if plain := tide(t, "pools", "used"); strings.Contains(plain, "USED") {
		t.Errorf("the list has no room for it unless it is wide:\n%s", plain)
	}
	follow(t, command{args: strings.Fields("pools used -w -o wide")}).await(t, `^NAME .* MEMORY-OF +FITS NOW +OTHER +MESSAGE$`)
	expect("no right", unknown("you may not list nodes.metrics.k8s.io"), command{kubeconfig: cluster.UserKubeconfig(t, "describer")})

	four := known("2.57 CPU, 8Gi memory", 4, "2574m", "8Gi")
	for _, tc := range []struct {
		name, metrics string
		want          usedOf
	}{
		{"negative", metricsOf("used-5", now, `{cpu: "-1", memory: 2Gi}`), four},
		{"more than any node has", metricsOf("used-5", now, `{cpu: "1e30", memory: "9999999999Ei"}`), four},
		{"what takes forever to parse", metricsOf("used-5", now, `{cpu: "1e2000000000", memory: 2Gi}`), four},
		{"no amounts", metricsOf("used-5", now, `{cpu: [1], memory: {a: b}}`), four},
		{"no usage", metricsOf("used-5", now, `all of it`), four},
		{"old", metricsOf("used-5", now.Add(-time.Hour), `{cpu: "1", memory: 2Gi}`), four},
		{"other resources too", metricsOf("used-5", now, `{cpu: "643493076n", memory: 2Gi, example.com/x: "-1e99", y: 7}`), known("3.22 CPU, 10Gi memory", 5, "3218m", "10Gi")},
	} {
		kubectl(t, tc.metrics, "replace", "-f", "-")
		expect(tc.name, tc.want, command{})
	}
	kubectl(t, "", "delete", "nodes.v1beta1.metrics.k8s.io", "used-5")
	expect("some nodes", four, command{})
	kubectl(t, "", "delete", "nodes.v1beta1.metrics.k8s.io", "used-1", "used-2", "used-3", "used-4")
	expect("only nodes of no pool", unknown("none of its nodes has metrics of the last 10 minutes"), command{})
}

// TestMetricsServerIsDown checks that a metrics server that does not respond, or responds with an
// error, delays commands only briefly.
func TestMetricsServerIsDown(t *testing.T) {
	cluster.AddNodes(t, "down", 1, "--labels", "node-role.kubernetes.io/down=")
	cluster.Apply(t, framework.Pool("down"))
	kubectl(t, describer, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, describer, "delete", "-f", "-") })
	proxy := cluster.StartProxy(t, "")
	framework.Eventually(t, "the rights are in force", func() error {
		return diff(0, command{kubeconfig: proxy.Kubeconfig, args: strings.Fields("pools down")}.run(t).code)
	})
	for _, tc := range []struct{ fault, args, want string }{
		{"kind: Hang", "", "not available: no answer in 3s"},
		{"kind: Hang", "--request-timeout=2s", "not available: no answer in 2s"},
		{"kind: Error, code: 503, reason: ServiceUnavailable, message: the server is down", "", "not available: the server is down"},
		{"kind: Error, code: 503, reason: ServiceUnavailable, message: the server is down, retryAfter: 1s", "", "not available: no answer in 3s"},
	} {
		proxy.Add(t, fmt.Sprintf("rules: [{name: bad, match: {resources: [nodes.metrics.k8s.io]}, fault: {%s}}]", tc.fault))
		framework.Eventually(t, fmt.Sprintf("with %s %s it is said that it is down", tc.fault, tc.args), func() error {
			r := command{kubeconfig: proxy.Kubeconfig, args: append(strings.Fields("pools describe down"), strings.Fields(tc.args)...)}.run(t)
			if r.code != 0 || !strings.Contains(r.stdout, "\nUsed:        "+tc.want+"\n") {
				return fmt.Errorf("exit code %d, want %s\n%s%s", r.code, tc.want, r.stdout, r.stderr)
			}
			return nil
		})
		proxy.Remove(t, "bad")
	}
}
