// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

func TestPrintPlan(t *testing.T) {
	add := preview.Change{Action: "Add", Kind: "taint", Key: "example.com/t:NoExecute", To: "1", Pool: "gpu"}
	plan := &view.Plan{
		Pools: []view.PoolPlan{
			{Name: "gpu", Action: "Change", RuntimeClass: &preview.RuntimeClass{Name: "node-pool-gpu", Action: "Replace", From: "runc", To: "kata"}},
			{Name: "old", Action: "None"},
		},
		Nodes: []preview.Node{{
			Name: "special", Leaves: []string{"gpu"},
			Changes: []preview.Change{
				{Action: "Remove", Kind: "label", Key: "a", From: "1"},
				{Action: "Change", Kind: "annotation", Key: "b", From: "evil\x1b[2J", To: "2", External: true},
			},
			ConflictsBegin: []preview.Conflict{{Pool: "gpu", Owner: "old", Kind: "label", Key: "c"}},
		}},
	}
	for i := range 5000 {
		plan.Nodes = append(plan.Nodes, preview.Node{Name: fmt.Sprintf("node-%04d", i), Changes: []preview.Change{add}})
		plan.Pods = append(plan.Pods, preview.Pod{Namespace: "shop", Name: fmt.Sprint("web-", i), Node: fmt.Sprintf("node-%04d", i%100), Owner: "Deployment/web",
			Outcome: preview.OutcomeEvicted, WithinBudgets: true, Because: "taint example.com/t=1:NoExecute"})
	}
	for range 12 {
		plan.Blockers = append(plan.Blockers, drain.Blocker{Namespace: "shop", Workload: "Deployment/web", Count: 3, Message: "the PodDisruptionBudget web allows nothing"})
	}
	plan.Pods = append(plan.Pods,
		preview.Pod{Namespace: "shop", Name: "alone", Node: "special", Outcome: preview.OutcomeEvicted, Because: "taint x:NoExecute", AfterSeconds: 300},
		preview.Pod{Namespace: "shop", Name: "etcd", Node: "special", Outcome: preview.OutcomeEvicted, Because: "taint x:NoExecute", Static: true},
		preview.Pod{Namespace: "shop", Name: "agent-x", Node: "special", Owner: "DaemonSet/agent", Outcome: preview.OutcomeNotReschedulable, Because: "labels"})
	want := `Pools:         NodePool "gpu" would change
               NodePool "old" would not change
Nodes:         5001 would change, 0 join, 1 leave
Conflicts:     begin on 1 node, end on 0
RuntimeClass:  node-pool-gpu would be replaced: handler kata, now runc
Pods:          5002 would be evicted from 101 nodes, 5000 of them within their budgets, a few nodes at a time
               1 would keep running, but could not be rescheduled there
Would wait:    shop/Deployment/web (3 pods): the PodDisruptionBudget web allows nothing
` + strings.Repeat("               shop/Deployment/web (3 pods): the PodDisruptionBudget web allows nothing\n", 9) + `               and 2 more

5000 nodes: node-0000, node-0001, node-0002, node-0003, node-0004 and 4995 more
  + taint example.com/t=1:NoExecute
node special
  leaves pool "gpu"
  - label a=1
  ~ annotation b=2 instead of "evil\x1b[2J", which no pool has set and none would restore
  ! label c stays with pool "old", which is older; pool "gpu" does not get it

NAMESPACE   WORKLOAD          PODS   NODES   OUTCOME                  BECAUSE OF                        NOTE
shop        Deployment/web    5000   100     evicted within budgets   taint example.com/t=1:NoExecute
shop        Pod/alone         1      1       evicted after 5m         taint x:NoExecute                 has no controller: not recreated
shop        Pod/etcd          1      1       evicted                  taint x:NoExecute                 static: restarted by its kubelet
shop        DaemonSet/agent   1      1       not reschedulable        labels                            not recreated on these nodes
`
	show := func(all bool, s term.Screen) string {
		var out strings.Builder
		if err := printPlan(&out, plan, all, s); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if diff := cmp.Diff(want, show(false, term.Screen{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := show(true, term.Screen{}); strings.Count(got, "\nnode ") != 5001 || strings.Count(got, " web-") != 5000 {
		t.Errorf("-o wide names %d nodes and %d pods, want 5001 and 5000", strings.Count(got, "\nnode "), strings.Count(got, " web-"))
	}
	if got := show(false, term.Screen{Terminal: true, Width: 60, Colors: true}); !strings.Contains(got, "\x1b[32m  + taint") || !strings.Contains(got, "…") {
		t.Errorf("on a terminal:\n%s", got)
	}
	// Even if every node changes in a different way, the output fits on a page.
	for i := range plan.Nodes {
		plan.Nodes[i].Changes = []preview.Change{{Action: "Change", Kind: "label", Key: "a", From: fmt.Sprint(i), To: "1"}}
	}
	if got := show(false, term.Screen{}); strings.Count(got, "\n") > 100 || !strings.Contains(got, "and 4981 nodes, each with changes of its own; -o wide names them\n") {
		t.Errorf("5001 different nodes are %d lines:\n%s", strings.Count(got, "\n"), got)
	}
	plan.Pods = nil
	if got := show(false, term.Screen{}); !strings.Contains(got, "Pods:          unknown\n") {
		t.Errorf("without the right to read pods:\n%s", got)
	}
}

func TestPlanOfNothing(t *testing.T) {
	plan := &view.Plan{Pools: []view.PoolPlan{{Name: "gpu", Action: "None"}}}
	var out strings.Builder
	if err := printPlan(&out, plan, false, term.Screen{}); err != nil || plan.Changes() {
		t.Error(err, "a plan without changes has changes:", plan.Changes())
	}
	if want := "Pools:         NodePool \"gpu\" would not change\nNothing would change on nodes or pods.\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestReadPools(t *testing.T) {
	pool := func(name string) string {
		return "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata: {name: " + name + "}\n---\n"
	}
	const other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n"
	for _, tc := range []struct{ name, text, want string }{
		{"several, and others", pool("a") + other + pool("b"), "2 pools, 1 others"},
		{"a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: tidekeeper.dev/v1, kind: NodePool, metadata: {name: a}}\n", "1 pools, 0 others"},
		{"twice", pool("a") + pool("a"), `standard input: NodePool "a" appears twice`},
		{"no name", pool(""), "standard input: a NodePool without a name"},
		{"an unknown version", strings.Replace(pool("a"), "/v1", "/v2", 1), "standard input: apiVersion tidekeeper.dev/v2: write tidekeeper.dev/v1"},
		{"none", other, "the manifests contain no NodePool"},
		{"no YAML", "a: [", "error parsing standard input: error converting YAML to JSON: yaml: line 1: did not find expected node content"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &cmdutil.Env{In: strings.NewReader(tc.text)}
			pools, others, err := readPools(e, resource.FilenameOptions{Filenames: []string{"-"}})
			got := fmt.Sprintf("%d pools, %d others", len(pools), others)
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestApplierOf checks that a plan applies a manifest with the field manager that last applied the
// pool.
func TestApplierOf(t *testing.T) {
	by := func(names ...string) *tidekeeperv1.NodePool {
		p := aPool("a", "", nil)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "tidekeeper", Operation: "Update"}, {Manager: "x", Operation: "Apply", Subresource: "status"}}
		for _, name := range names {
			p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: name, Operation: "Apply"})
		}
		return &p
	}
	for _, tc := range []struct {
		live *tidekeeperv1.NodePool
		want string
	}{{nil, "kubectl"}, {by(), "kubectl"}, {by("argocd-controller"), "argocd-controller"}, {by("one", "two"), "kubectl"}} {
		if got := applierOf(tc.live); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
