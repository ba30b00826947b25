// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const planned = `
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: planned}
spec:
  labels: {example.com/tier: silver, example.com/old: "1"}
`

// plan runs kubectl tide pools plan, and fails the test unless the command finds changes.
func plan(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := command{stdin: stdin, args: append([]string{"pools", "plan"}, args...)}.run(t)
	if r.code != 2 || r.stderr != "" {
		t.Fatalf("plan %s: exit code %d, want 2\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// TestPoolsPlan checks that a plan predicts the changes of the nodes and pods that occur when it is
// applied.
func TestPoolsPlan(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "plan", 2, "--labels", "node-role.kubernetes.io/planned=")
	aNamespace(t, "plan")
	for name, tolerations := range map[string][]corev1.Toleration{
		"goes": nil, "stays": {{Key: "example.com/maintenance", Operator: corev1.TolerationOpExists}},
	} {
		cluster.Apply(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "plan"},
			Spec:       corev1.PodSpec{NodeName: "plan-1", Tolerations: tolerations, Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
		})
	}
	t.Cleanup(func() {
		_, _ = cluster.Kubectl("", "delete", "nodepools.tidekeeper.dev", "planned", "--ignore-not-found")
	})
	apply := func(manifest string) {
		t.Helper()
		if out, err := cluster.Kubectl(manifest, "apply", "-f", "-"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		pool := framework.Pool("planned")
		framework.Eventually(t, "the pool is healthy", func() error {
			cluster.Refresh(t, pool)
			if err := framework.ReadyIs(pool.Status.Conditions, pool.Generation, "Healthy"); err != nil {
				return err
			}
			return diff("planned Healthy 2/2", strings.Join(fields(tide(t, "pools"))[1][:3], " "))
		})
	}

	created := plan(t, planned, "-f", "-")
	want := `Pools:         NodePool "planned" would be created
Nodes:         2 would change, 2 join, 0 leave
Pods:          none would be evicted, and all could be rescheduled there

2 nodes: plan-1, plan-2
  joins pool "planned"
  + label example.com/old=1
  + label example.com/tier=silver
`
	if err := diff(want, created); err != nil {
		t.Error(err)
	}
	var pools tidekeeperv1.NodePoolList
	if err := cluster.List(t.Context(), &pools); err != nil || len(pools.Items) > 0 {
		t.Fatalf("planning has created %d pools, %v", len(pools.Items), err)
	}
	apply(planned)
	if got := tide(t, "pools", "plan", "--filename", manifest(t, planned)); got != "Pools:         NodePool \"planned\" would not change\nNothing would change on nodes or pods.\n" {
		t.Errorf("a plan without changes:\n%s", got)
	}
	misspelt := command{stdin: strings.Replace(planned, "labels", "labls", 1), args: []string{"pools", "plan", "-f", "-"}}.run(t)
	if want := (result{stderr: `error: NodePool "planned": unknown field "spec.labls"` + "\n", code: 1}); misspelt != want {
		t.Errorf("a misspelt field of an existing pool: %+v, want %+v", misspelt, want)
	}

	// The new spec changes one label's value, removes another label, and adds a taint that evicts
	// pods.
	change := strings.Replace(planned, `silver, example.com/old: "1"}`, "gold}\n  taints: [{key: example.com/maintenance, effect: NoExecute}]", 1)
	shown := plan(t, change, "-f", "-")
	for _, want := range []string{
		"Pools:         NodePool \"planned\" would change\nNodes:         2 would change, 0 join, 0 leave\nPods:          1 would be evicted from 1 node, ",
		"\n2 nodes: plan-1, plan-2\n  - label example.com/old=1\n  ~ label example.com/tier=gold instead of \"silver\"\n  + taint example.com/maintenance:NoExecute\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the plan has no %q:\n%s", want, shown)
		}
	}
	if !regexp.MustCompile(`\nplan +Pod/goes +1 +1 +evicted +taint example.com/maintenance:NoExecute +has no controller: not recreated\n`).MatchString(shown) {
		t.Errorf("the plan does not say which pod is evicted:\n%s", shown)
	}
	if wide := plan(t, change, "-f", "-", "-o", "wide"); !strings.Contains(wide, "\nnode plan-1\n") || !strings.Contains(wide, "\nnode plan-2\n") {
		t.Errorf("-o wide does not name each node by itself:\n%s", wide)
	}
	var machine struct {
		Pools []struct{ Name, Action string }
		Nodes []preview.Node
		Pods  []preview.Pod
	}
	if err := json.Unmarshal([]byte(plan(t, change, "-f", "-", "-o", "json")), &machine); err != nil || len(machine.Nodes) != 2 || len(machine.Pods) != 1 ||
		machine.Pods[0].Outcome != "Evicted" || machine.Pools[0].Action != "Change" || len(machine.Nodes[0].Changes) != 3 {
		t.Errorf("-o json: %+v, %v", machine, err)
	}
	terminal := command{args: []string{"pools", "plan", "-f", manifest(t, change)}}.runOn(t, 60)
	if terminal.code != 2 || !strings.Contains(terminal.stdout, "\x1b[32m  + taint") || !strings.Contains(terminal.stdout, "\x1b[31mevict") {
		t.Errorf("on a terminal: exit code %d\n%s", terminal.code, terminal.stdout)
	}

	apply(change)
	framework.Eventually(t, "the pod that the plan names is evicted, and no other", func() error {
		var pods corev1.PodList
		if err := cluster.List(t.Context(), &pods, client.InNamespace("plan")); err != nil {
			return err
		}
		var names []string
		for _, p := range pods.Items {
			names = append(names, p.Name)
		}
		return diff([]string{"stays"}, names)
	})
	for _, name := range []string{"plan-1", "plan-2"} {
		node := framework.Node(name)
		cluster.Refresh(t, node)
		if _, old := node.Labels["example.com/old"]; old || node.Labels["example.com/tier"] != "gold" {
			t.Errorf("node %s has the labels %v", name, node.Labels)
		}
	}

	gone := plan(t, "", "--delete", "planned")
	for _, want := range []string{"NodePool \"planned\" would be deleted\n", "  leaves pool \"planned\"\n  - label example.com/tier=gold\n  - taint example.com/maintenance:NoExecute\n"} {
		if !strings.Contains(gone, want) {
			t.Errorf("the plan of a deletion has no %q:\n%s", want, gone)
		}
	}
}

// manifest writes a manifest to a file and returns its path.
func manifest(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pool.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPoolsPlanConflictsAndStranded checks that a plan leaves keys that older pools set to these
// pools. Pods that a new NoSchedule taint strands are listed by workload, and pods of a DaemonSet
// are marked.
func TestPoolsPlanConflictsAndStranded(t *testing.T) {
	cluster.AddNodes(t, "strand", 1, "--labels", "node-role.kubernetes.io/strand=,node-role.kubernetes.io/elder=")
	aNamespace(t, "strand")
	aDeployment(t, "strand", "web")
	elder := framework.Pool("elder")
	elder.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/team": "a"}
	cluster.Apply(t, elder)
	shown := plan(t, `
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: strand}
spec:
  labels: {example.com/team: b}
  taints: [{key: example.com/only, effect: NoSchedule}]
  handler: runc
`, "-f", "-")
	for _, want := range []string{
		"Conflicts:     begin on 1 node, end on 0\n", "RuntimeClass:  node-pool-strand would be created, handler runc\n",
		"  ! label example.com/team stays with pool \"elder\", which is older; pool \"strand\" does not get it\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the plan has no %q:\n%s", want, shown)
		}
	}
	var pods corev1.PodList
	if err := cluster.List(t.Context(), &pods, client.InNamespace("strand"), client.MatchingFields{"spec.nodeName": "strand-1"}); err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`\nstrand +Deployment/web +(\d+) +1 +not reschedulable +taint example.com/only:NoSchedule\n`).FindStringSubmatch(shown)
	if n := len(pods.Items); n > 0 && (row == nil || row[1] != fmt.Sprint(n)) {
		t.Errorf("%d pods would be stranded:\n%s", n, shown)
	}
}

// TestFewRequests checks that commands send few requests, regardless of the number of nodes and
// pods.
func TestFewRequests(t *testing.T) {
	cluster.AddNodes(t, "few", 20, "--labels", "node-role.kubernetes.io/few=")
	few := framework.Pool("few")
	cluster.Apply(t, few)
	// The API server rejects the first list of a kind while its watch cache fills, and the client
	// retries it. This command fills the caches.
	command{args: []string{"restarts", "-A"}}.run(t)
	taints := manifest(t, "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata: {name: few}\nspec: {taints: [{key: t, effect: NoSchedule}]}\n")
	for _, tc := range []struct {
		args string
		code int
		want []string
	}{
		{"pools", 0, []string{"list nodepools"}},
		{"pools -o wide", 0, []string{"list nodepools", "list nodes"}}, // This cluster does not serve the metrics API.
		{"pools describe few", 0, []string{"get nodepools", "list deviceclasses", "list events", "list nodes", "list nodes", "list pods"}},
		{"pools plan -f " + taints, 2, []string{"list nodepools", "list nodes", "list pods", "patch nodepools"}},
		{"restarts -A", 0, []string{"list freezes", "list scheduledrestarts"}},
		{"restarts next -A", 0, []string{"list freezes", "list scheduledrestarts"}},
		{"pods slow -A", 0, []string{"list pods"}},
	} {
		audit := cluster.Audit(t, "kubectl-tide/")
		if r := (command{args: strings.Fields(tc.args)}).run(t); r.code != tc.code {
			t.Errorf("%s: exit code %d\n%s", tc.args, r.code, r.stderr)
		}
		var asked []string
		events := 0
		framework.Eventually(t, "the audit log is complete", func() error {
			for _, r := range audit.Requests(t) {
				// pods slow requests the events of each of the slowest pods separately.
				if events++; strings.HasPrefix(tc.args, "pods slow") && r.Resource == "events" && events <= 20 {
					continue
				}
				asked = append(asked, r.Verb+" "+r.Resource)
			}
			slices.Sort(asked)
			return diff(tc.want, asked)
		})
	}
}

func TestPoolsPlanErrors(t *testing.T) {
	noRights := cluster.UserKubeconfig(t, "dev")
	file := manifest(t, planned)
	for _, tc := range []struct {
		name, kubeconfig, args, stdin string
		code                          int
		want                          string
	}{
		{"nothing to plan", "", "", "", 1, "error: say what to plan: -f FILE, -k DIRECTORY or --delete NAME"},
		{"no such file", "", "-f /nowhere", "", 1, `error: the path "/nowhere" does not exist`},
		{"no pool in it", "", "-f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", 1, "error: the manifests contain no NodePool"},
		{"a misspelt field", "", "-f -", strings.Replace(planned, "labels", "labls", 1), 1, "error: failed to create typed patch object (/planned; tidekeeper.dev/v1, Kind=NodePool): .spec.labls: field not declared in schema"},
		{"a guarded key", "", "-f -", strings.Replace(planned, "example.com/tier", "kubernetes.io/os", 1), 1, `error: NodePool.tidekeeper.dev "planned" is invalid: spec.labels: Invalid value: `},
		{"a wrong format", "", "-f " + file + " -o name", "", 1, "error: -o name: write one of json, yaml, wide"},
		{"no such pool", "", "--delete none", "", 3, `error: there is no NodePool "none"`},
		{"no server", "", "-f " + file + " --server http://127.0.0.1:1", "", 4, "error: the cluster at http://127.0.0.1:1 cannot be reached: connection refused"},
		{"no rights", noRights, "-f " + file, "", 5, `error: nodepools.tidekeeper.dev is forbidden: User "dev" cannot list resource "nodepools"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := command{kubeconfig: tc.kubeconfig, stdin: tc.stdin, args: append([]string{"pools", "plan"}, strings.Fields(tc.args)...)}.run(t)
			if r.code != tc.code || r.stdout != "" || !strings.HasPrefix(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("exit code %d, want %d; stdout %q\nstderr %s  want %s", r.code, tc.code, r.stdout, r.stderr, tc.want)
			}
		})
	}
}

// TestWatchMissesNoDeletion checks that -w reports a deletion even if it happens while no watch is
// open.
func TestWatchMissesNoDeletion(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	aNamespace(t, "gap")
	pool := framework.Pool("gap")
	cluster.Apply(t, pool)
	r := aRestart(t, "gap", "gap", "@daily", nil)
	pools := follow(t, command{kubeconfig: proxy.Kubeconfig, args: []string{"pools", "-w"}})
	restarts := follow(t, command{kubeconfig: proxy.Kubeconfig, args: []string{"restarts", "-n", "gap", "-w"}})
	pools.await(t, `^gap +Unknown +0/0 `)
	restarts.await(t, `^gap +Deployment/gap +@daily `)
	cluster.ChangeStatus(t, pool, func() { pool.Status.NodeCount = 7 })
	cluster.Change(t, r, func() { r.Spec.Schedule = "@hourly" })
	pools.await(t, `^gap +Unknown +0/7 `)
	restarts.await(t, `^gap +Deployment/gap +@hourly `)

	const both = "match: {resources: [nodepools, scheduledrestarts]}"
	proxy.Freeze(t, both)
	cluster.Delete(t, pool)
	cluster.Delete(t, r)
	proxy.Cut(t, both)
	proxy.Thaw(t)
	pools.await(t, `^gap was deleted$`)
	restarts.await(t, `^gap was deleted$`)
}
