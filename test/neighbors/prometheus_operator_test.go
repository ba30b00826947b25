// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// prometheusResource is a Prometheus that selects what config/monitoring has, and rejects
// ServiceMonitors that name files. Its scrape class says what a cluster's network would do: where
// on this machine the two managers serve what they would serve at the addresses of their Pods.
const prometheusResource = `
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata:
  name: main
  namespace: default
spec:
  serviceAccountName: prometheus
  serviceMonitorNamespaceSelector: {}
  serviceMonitorSelector: {matchLabels: {app.kubernetes.io/name: tidekeeper}}
  ruleNamespaceSelector: {}
  ruleSelector: {matchLabels: {app.kubernetes.io/name: tidekeeper}}
  arbitraryFSAccessThroughSMs: {deny: true}
  evaluationInterval: 1s
  scrapeClasses:
  - name: this-machine
    default: true
    relabelings:
    - {sourceLabels: [__address__], regex: "%s:8443", targetLabel: __address__, replacement: "%s"}
    - {sourceLabels: [__address__], regex: "%s:8443", targetLabel: __address__, replacement: "%s"}
`

// twoPools want the same label of the same node.
const twoPools = `
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: older}
spec: {selector: {matchLabels: {kubernetes.io/os: linux}}, labels: {example.com/pool: older}}
---
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: younger}
spec: {selector: {matchLabels: {kubernetes.io/os: linux}}, labels: {example.com/pool: younger}}
`

// config/monitoring, as it is, makes Prometheus Operator write a configuration by which
// Prometheus finds and scrapes both managers of config/default with the token of the
// ServiceMonitor, and evaluates the alerts.
func TestPrometheusOperator(t *testing.T) {
	c := neighborhood{framework.StartEmpty(t, "--nodes=1")}
	c.MustKubectl(t, "", "apply", "-k", filepath.Join(framework.Root(), "config", "default"))
	c.startPrometheusOperator(t)
	c.MustKubectl(t, "", "apply", "-k", filepath.Join(framework.Root(), "config", "monitoring"))

	// In place of the simulated pods.
	c.MustKubectl(t, "", "-n", framework.ManagerNamespace, "rollout", "status", "deployment/tidekeeper", framework.LongTimeout)
	c.MustKubectl(t, "", "-n", framework.ManagerNamespace, "scale", "deployment/tidekeeper", "--replicas=0")
	c.MustKubectl(t, "", "-n", framework.ManagerNamespace, "wait", framework.LongTimeout, "--for=delete", "pods", "--all")
	first := c.startManagerAsPod(t)
	second := c.startManagerAsPod(t, first)
	c.MustKubectl(t, twoPools, "apply", "-f", "-")

	c.MustKubectl(t, fmt.Sprintf(prometheusResource, first.ip, first.address, second.ip, second.address), "apply", "-f", "-")
	c.MustKubectl(t, "", "wait", "--for=condition=Reconciled", "--for=condition=Available", framework.LongTimeout, "prometheus/main")
	prometheus := c.startPrometheus(t, "main")

	c.wantScraped(t, prometheus, first, second)
	for query, want := range map[string]string{
		`sum(leader_election_master_status{job="tidekeeper-metrics"})`:        "1",
		`max(tidekeeper_nodepool_nodes{pool="older",state="all"})`:            "1",
		`count(tidekeeper_nodepool_nodes{pool="younger",state="conflicted"})`: "2",
	} {
		// What the first scrape is too early for is there after the second.
		framework.EventuallyWithin(t, 2*framework.Patience, query+" is "+want, func() error {
			got, err := ask(prometheus, query)
			if err == nil && got != want {
				err = errors.New("it is " + got)
			}
			return err
		})
	}

	c.wantRules(t, prometheus)
	wantAlert(t, prometheus, "TidekeeperPoolConflicted", "pending")
	wantAlert(t, prometheus, "TidekeeperDown", "inactive")
	wantAlert(t, prometheus, "TidekeeperNoLeader", "inactive")

	c.wantRefused(t, first.address)
}

// neighborhood is a cluster with software of others in it.
type neighborhood struct{ *framework.Cluster }

// startPrometheusOperator installs Prometheus Operator and the rights of a Prometheus, and runs
// the operator in place of the simulated pod.
func (c neighborhood) startPrometheusOperator(t *testing.T) {
	t.Helper()
	module := framework.ModuleDir(t, "hack/prometheus-operator", "github.com/prometheus-operator/prometheus-operator")
	// On the server, as the CRDs are too large for the annotation of a client-side apply.
	c.MustKubectl(t, "", "apply", "--server-side", "-f", filepath.Join(module, "bundle.yaml"))
	c.MustKubectl(t, "", "wait", framework.LongTimeout, "--for=condition=Established", "crd", "--all")
	for _, file := range []string{"service-account", "cluster-role", "cluster-role-binding"} {
		c.MustKubectl(t, "", "apply", "-f", filepath.Join(module, "example", "rbac", "prometheus", "prometheus-"+file+".yaml"))
	}
	// It would serve its own metrics on all addresses of this machine.
	c.MustKubectl(t, "", "patch", "deployment/prometheus-operator", "--type=json", "-p", fmt.Sprintf(
		`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--web.listen-address=%s"}]`, framework.FreeAddress(t)))
	c.RunAsPod(t, "PROMETHEUS_OPERATOR_BIN", "prometheus-operator", "--from=deployment/default/prometheus-operator")
}

// managerPod is a manager and its Pod.
type managerPod struct {
	name, ip string
	// address is where it serves metrics.
	address string
}

// startManagerAsPod runs the manager of config/default. Only the addresses at which it serves are
// of this machine.
func (c neighborhood) startManagerAsPod(t *testing.T, others ...managerPod) managerPod {
	t.Helper()
	m := managerPod{address: framework.FreeAddress(t)}
	c.RunAsPod(t, "TIDEKEEPER_BIN", "tidekeeper", "--from=deployment/"+framework.ManagerNamespace+"/tidekeeper",
		"--", "--leader-elect", "--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=50m", "--metrics-bind-address="+m.address, "--health-probe-bind-address="+framework.FreeAddress(t))
	framework.Eventually(t, "the manager has a Pod", func() error {
		pods := &corev1.PodList{}
		if err := c.List(t.Context(), pods, client.InNamespace(framework.ManagerNamespace)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			known := slices.ContainsFunc(others, func(other managerPod) bool { return other.name == pod.Name })
			if !known && pod.Status.PodIP != "" {
				m.name, m.ip = pod.Name, pod.Status.PodIP
				return nil
			}
		}
		return fmt.Errorf("there are %d Pods", len(pods.Items))
	})
	return m
}

// startPrometheus runs the Prometheus of a Prometheus resource with the account, the arguments and
// the configuration that the operator wrote, and returns its address. Two things differ, because it
// is a process of this machine. It has no volumes, so /etc/prometheus and /prometheus are folders
// of the test; in the configuration that is the path of the rules and no other. And it serves at an
// address that is free.
func (c neighborhood) startPrometheus(t *testing.T, name string) string {
	t.Helper()
	full, dir := "prometheus-"+name, t.TempDir()
	get := func(name string, into client.Object) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, into); err != nil {
			t.Fatal(err)
		}
	}
	write := func(content string, path ...string) {
		t.Helper()
		file := filepath.Join(dir, filepath.Join(path...))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	set, config, web, rules := &appsv1.StatefulSet{}, &corev1.Secret{}, &corev1.Secret{}, &corev1.ConfigMapList{}
	get(full, set)
	get(full, config)
	get(full+"-web-config", web)
	if err := c.List(t.Context(), rules, client.InNamespace("default"), client.MatchingLabels{"prometheus-name": name}); err != nil {
		t.Fatal(err)
	}

	write(string(web.Data["web-config.yaml"]), "web_config", "web-config.yaml")
	for _, of := range rules.Items {
		for file, content := range of.Data {
			write(content, "rules", of.Name, file)
		}
	}
	// The container beside it uncompresses the configuration and replaces variables of its own.
	uncompressed, err := gzip.NewReader(bytes.NewReader(config.Data["prometheus.yaml.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(uncompressed)
	if err != nil {
		t.Fatal(err)
	}
	replaced := []string{"/etc/prometheus/", dir + "/", "$(POD_NAME)", set.Name + "-0"}
	for _, variable := range containerOf(t, set, "config-reloader").Env {
		if variable.ValueFrom == nil {
			replaced = append(replaced, "$("+variable.Name+")", variable.Value)
		}
	}
	write(strings.NewReplacer(replaced...).Replace(string(text)), "config_out", "prometheus.env.yaml")

	address := framework.FreeAddress(t)
	args := []string{"--service-account=default/" + set.Spec.Template.Spec.ServiceAccountName, "--", "--web.listen-address=" + address}
	paths := strings.NewReplacer("=/etc/prometheus/", "="+dir+"/", "=/prometheus", "="+dir+"/data")
	for _, arg := range containerOf(t, set, "prometheus").Args {
		args = append(args, paths.Replace(arg))
	}
	c.RunAsPod(t, "PROMETHEUS_BIN", "prometheus", args...)
	return address
}

// containerOf returns a container of the pods of a StatefulSet.
func containerOf(t *testing.T, set *appsv1.StatefulSet, name string) corev1.Container {
	t.Helper()
	containers := set.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the StatefulSet %s has no container %s", set.Name, name)
	}
	return containers[i]
}

// target is what Prometheus says of a target.
type target struct {
	ScrapePool, ScrapeURL, ScrapeInterval, Health, LastError string
	Labels                                                   map[string]string
}

// wantScraped waits until Prometheus has these managers as its targets, and no others, and has
// scraped both. It begins within the interval of the ServiceMonitor.
func (c neighborhood) wantScraped(t *testing.T, prometheus string, managers ...managerPod) {
	t.Helper()
	var want []target
	for _, m := range managers {
		want = append(want, target{
			ScrapePool: "serviceMonitor/" + framework.ManagerNamespace + "/tidekeeper/0", ScrapeURL: "https://" + m.address + "/metrics",
			ScrapeInterval: "30s", Health: "up",
			// Alerts and dashboards select this job.
			Labels: map[string]string{
				"job": "tidekeeper-metrics", "service": "tidekeeper-metrics", "endpoint": "https", "namespace": framework.ManagerNamespace,
				"pod": m.name, "container": "manager", "instance": m.address,
			},
		})
	}
	byURL := func(a, b target) int { return strings.Compare(a.ScrapeURL, b.ScrapeURL) }
	slices.SortFunc(want, byURL)
	framework.EventuallyWithin(t, 2*framework.Patience, "Prometheus scrapes both managers", func() error {
		var got struct{ ActiveTargets []target }
		if err := framework.AskPrometheus(prometheus, "targets", url.Values{"state": {"active"}}, &got); err != nil {
			return err
		}
		slices.SortFunc(got.ActiveTargets, byURL)
		if diff := cmp.Diff(want, got.ActiveTargets); diff != "" {
			return errors.New("its targets are not as expected:\n" + diff)
		}
		return nil
	})
}

// ask returns the only number that is the answer to a query.
func ask(prometheus, query string) (string, error) {
	var data struct{ Result []struct{ Value [2]any } }
	if err := framework.AskPrometheus(prometheus, "query", url.Values{"query": {query}}, &data); err != nil {
		return "", err
	}
	if len(data.Result) != 1 {
		return "", fmt.Errorf("there are %d series", len(data.Result))
	}
	return fmt.Sprint(data.Result[0].Value[1]), nil
}

// rule is what Prometheus says of an alert.
type rule struct {
	Name, Health, LastError, State string
}

func rulesOf(prometheus string) (rules []rule, _ error) {
	var data struct{ Groups []struct{ Rules []rule } }
	err := framework.AskPrometheus(prometheus, "rules", nil, &data)
	for _, group := range data.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, err
}

// wantRules waits until Prometheus has evaluated each alert of the PrometheusRule, and no others,
// without an error.
func (c neighborhood) wantRules(t *testing.T, prometheus string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(framework.Root(), "config", "monitoring", "prometheus_rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var ours struct {
		Spec struct {
			Groups []struct{ Rules []struct{ Alert string } }
		}
	}
	if err := yaml.Unmarshal(content, &ours); err != nil {
		t.Fatal(err)
	}
	var want []rule
	for _, group := range ours.Spec.Groups {
		for _, alert := range group.Rules {
			want = append(want, rule{Name: alert.Alert, Health: "ok"})
		}
	}
	byName := func(a, b rule) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(want, byName)
	framework.Eventually(t, "all alerts are evaluated", func() error {
		got, err := rulesOf(prometheus)
		if err != nil {
			return err
		}
		slices.SortFunc(got, byName)
		for i := range got {
			got[i].State = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New("its alerts are not as expected:\n" + diff)
		}
		return nil
	})
}

// wantAlert waits until an alert has a state.
func wantAlert(t *testing.T, prometheus, name, state string) {
	t.Helper()
	framework.Eventually(t, name+" is "+state, func() error {
		rules, err := rulesOf(prometheus)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.Name == name && r.State == state }) {
			return fmt.Errorf("the alerts are %v", rules)
		}
		return nil
	})
}

// wantRefused checks that a manager serves its metrics to no client without a token, nor to one
// that may not read them.
func (c neighborhood) wantRefused(t *testing.T, address string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "curious", Namespace: "default"}}
	c.Apply(t, account)
	other := strings.TrimSpace(c.MustKubectl(t, "", "create", "token", account.Name))
	// The certificate is self-signed.
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer insecure.CloseIdleConnections()
	for authorization, want := range map[string]int{"": http.StatusUnauthorized, "Bearer " + other: http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", authorization)
		response, err := insecure.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("with the authorization %.10q the manager answers %s, want %d", authorization, response.Status, want)
		}
	}
}
