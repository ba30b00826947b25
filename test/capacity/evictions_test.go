// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// caseLabel is the node label that names the case that a node belongs to.
const caseLabel = "example.com/case"

// runs describes a running pod on a node of a case.
type runs struct {
	node, class, app, cpu string
	change                func(*corev1.Pod)
}

// eviction is a pod of high priority on nodes of its own, and the scheduler's decision about it.
type eviction struct {
	name  string
	nodes map[string]string // each node's zone; a node with the prefix "c" is cordoned, one with "o" is outside of the pool
	runs  []runs
	class string
	cpu   string
	// change changes the pod that needs room.
	change func(*corev1.Pod)
	// node is where the scheduler evicts pods; "" means that it evicts none.
	node string
	// victims has the number of evicted pods of each app, and violations how many violate a budget.
	victims    map[string]int
	violations int
	after      int64 // copies that fit when the victims are gone
	fits       bool  // the scheduler finds a node
}

// with returns a change of a pod that lets it use claims.
func with(claims ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, c := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, volumeOf(c))
		}
	}
}

func onPort(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
}

// besides lets a pod run only on a node with a pod of the app.
func besides(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: corev1.LabelHostname,
		}}}}
	}
}

// elsewhere moves a pod into the namespace of another tenant.
func elsewhere(p *corev1.Pod) { p.Namespace = "evicts-other" }

// full returns a running pod that requests all CPUs of a node.
func full(node, class, app string) runs { return runs{node, class, app, "2", nil} }

// evictions are the cases of TestEvictionsOfEachKind. Nodes have 2 CPUs, and one volume can be attached
// to each.
var evictions = []eviction{
	{name: "equal", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-high", "web")}, class: "fit-high"},
	{name: "never", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-low", "web")}, class: "fit-polite"},
	{name: "no-class", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-low", "web")}, node: "n", victims: map[string]int{"web": 1}, after: 2},
	{name: "no-budget", nodes: map[string]string{"n": "", "m": ""}, runs: []runs{full("n", "fit-low", "guarded"), full("m", "fit-middle", "web")},
		class: "fit-high", node: "m", victims: map[string]int{"web": 1}, after: 2},
	{name: "violated", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-low", "guarded")}, class: "fit-high", node: "n", victims: map[string]int{"guarded": 1}, violations: 1, after: 2},
	{name: "one-of-two", nodes: map[string]string{"n": ""}, runs: []runs{{"n", "fit-low", "half", "1", nil}, {"n", "fit-low", "half", "1", nil}},
		class: "fit-high", cpu: "2", node: "n", victims: map[string]int{"half": 2}, violations: 1, after: 1},
	{name: "cordoned", nodes: map[string]string{"c": "", "n": ""}, runs: []runs{full("c", "fit-low", "web"), full("n", "fit-middle", "db")}, class: "fit-high", node: "n", victims: map[string]int{"db": 1}, after: 2},
	{name: "outside", nodes: map[string]string{"n": "", "o": ""}, runs: []runs{full("n", "fit-low", "web")}, class: "fit-high", fits: true},
	{name: "few", nodes: map[string]string{"n": ""}, runs: []runs{{"n", "fit-low", "web", "500m", nil}, {"n", "fit-low", "web", "500m", nil}, {"n", "", "db", "500m", nil}, {"n", "", "db", "500m", nil}},
		class: "fit-high", cpu: "900m", node: "n", victims: map[string]int{"web": 2}, after: 1},
	{name: "port", nodes: map[string]string{"n": ""}, runs: []runs{{"n", "fit-low", "web", "100m", onPort}, {"n", "fit-low", "db", "100m", nil}},
		class: "fit-high", cpu: "100m", change: onPort, node: "n", victims: map[string]int{"web": 1}, after: 1},
	// The scheduler does not support affinity to the pods that it would evict.
	{name: "affinity", nodes: map[string]string{"n": ""}, runs: []runs{{"n", "fit-low", "web", "100m", nil}, {"n", "fit-low", "db", "1900m", nil}}, class: "fit-high", change: besides("web")},
	{name: "terminating", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-low", "leaving")}, class: "fit-high", node: "n", victims: map[string]int{"leaving": 1}, after: 2},
	{name: "twins", nodes: map[string]string{"n": "", "m": ""}, runs: []runs{full("n", "fit-low", "web"), full("m", "fit-low", "web")}, class: "fit-high", node: "*", victims: map[string]int{"web": 1}, after: 2},
	{name: "too-large", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-low", "web")}, class: "fit-high", cpu: "3"},

	{name: "once", nodes: map[string]string{"n": "", "m": ""}, runs: []runs{{"n", "fit-low", "web", "100m", with("once")}, {"n", "fit-low", "db", "100m", nil}},
		class: "fit-high", change: with("once"), node: "n", victims: map[string]int{"web": 1}, after: 1},
	{name: "once-equal", nodes: map[string]string{"n": "", "m": ""}, runs: []runs{{"n", "fit-high", "web", "100m", with("once-equal")}}, class: "fit-high", change: with("once-equal")},
	{name: "once-cordoned", nodes: map[string]string{"c": "", "m": ""}, runs: []runs{{"c", "fit-low", "web", "100m", with("once-cordoned")}}, class: "fit-high", change: with("once-cordoned")},
	// The other tenant's pod uses another claim, of the same name. The scheduler confuses them.
	{name: "namesake", nodes: map[string]string{"n": "", "m": ""}, runs: []runs{{"n", "fit-middle", "web", "100m", with("namesake")}, {"m", "fit-low", "innocent", "100m", func(p *corev1.Pod) { elsewhere(p); with("namesake")(p) }}},
		class: "fit-high", change: with("namesake"), node: "m", victims: map[string]int{"innocent": 1}, after: 0},
	{name: "limit", nodes: map[string]string{"n": ""}, runs: []runs{{"n", "fit-low", "web", "100m", with("any-1")}, {"n", "fit-low", "db", "100m", nil}},
		class: "fit-high", cpu: "100m", change: with("any-2"), node: "n", victims: map[string]int{"web": 1}, after: 19},
	{name: "limit-shared", nodes: map[string]string{"n": ""}, runs: []runs{{"n", "fit-low", "web", "100m", with("any-1")}, {"n", "fit-low", "web", "100m", with("any-1")}},
		class: "fit-high", cpu: "100m", change: with("any-2"), node: "n", victims: map[string]int{"web": 2}, after: 20},
	{name: "limit-of-one", nodes: map[string]string{"n": ""}, runs: []runs{{"n", "fit-low", "web", "100m", with("any-1")}}, class: "fit-high", cpu: "100m", change: with("any-2", "any-3")},
	{name: "zone", nodes: map[string]string{"n": "a", "m": "b"}, runs: []runs{full("n", "fit-middle", "web"), full("m", "fit-low", "db")},
		class: "fit-high", change: with("in-a"), node: "n", victims: map[string]int{"web": 1}, after: 2},
	{name: "topology", nodes: map[string]string{"n": "a", "m": "b"}, runs: []runs{full("n", "fit-middle", "web"), full("m", "fit-low", "db")},
		class: "fit-high", change: with("fresh"), node: "n", victims: map[string]int{"web": 1}, after: 2},
	{name: "no-claim", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-low", "web")}, class: "fit-high", change: with("nowhere")},
	{name: "unbound", nodes: map[string]string{"n": ""}, runs: []runs{full("n", "fit-low", "web")}, class: "fit-high", change: with("unbound")},
}

// pod returns the pod of a case that needs room.
func (e eviction) pod(w *storageWorld) *corev1.Pod {
	cpu := "1"
	if e.cpu != "" {
		cpu = e.cpu
	}
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "needs-" + e.name, Namespace: w.name, Labels: map[string]string{"app": "needs"}},
		Spec:       corev1.PodSpec{NodeSelector: map[string]string{caseLabel: e.name}, PriorityClassName: e.class, Containers: []corev1.Container{container("app", list("cpu", cpu))}},
	}
	if e.change != nil {
		e.change(p)
	}
	return p
}

// setUp creates the nodes of a case, and its running pods, which take minutes to terminate.
func (e eviction) setUp(t *testing.T, w *storageWorld) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(e.nodes)) {
		n := framework.Node(w.name + "-" + e.name + "-" + name)
		n.Labels = map[string]string{caseLabel: e.name, corev1.LabelHostname: n.Name}
		if zone := e.nodes[name]; zone != "" {
			n.Labels[corev1.LabelTopologyZone] = w.zone(zone)
		}
		n.Spec.Unschedulable = name == "c"
		n.Status.Allocatable = list("cpu", "2", "memory", "4Gi", "pods", "100")
		cluster.Apply(t, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: w.driver(), NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))},
		}}}})
		if name == "o" {
			nodes := w.nodes
			w.addNode(t, n)
			w.nodes = nodes
			continue
		}
		n.Labels[worldLabel] = w.name
		w.addNode(t, n)
	}
	for _, r := range e.runs {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("running-", w.pods), Namespace: w.name, Labels: map[string]string{"app": r.app, caseLabel: e.name},
				Annotations: map[string]string{"sandbox.tidekeeper.dev/terminated-after": "10m"},
			},
			Spec: corev1.PodSpec{
				NodeName: w.name + "-" + e.name + "-" + r.node, PriorityClassName: r.class, TerminationGracePeriodSeconds: new(int64(600)), Containers: []corev1.Container{container("app", list("cpu", r.cpu))},
			},
		}
		if r.change != nil {
			r.change(p)
		}
		if err := cluster.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if p.Namespace == w.name {
			w.pods++
		}
	}
}

// TestEvictionsOfEachKind compares what pools fit says about the preemption by a pod with what the
// scheduler then does, and pools pending with that: for equal priorities, pods that do not preempt,
// budgets, cordoned nodes, nodes outside of the pool, pods that are being deleted, and claims.
func TestEvictionsOfEachKind(t *testing.T) {
	applyPriorities(t)
	w := newStorageWorld(t, "evicts", storageNode{"z", "", 0, false})
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "evicts-other"}})
	framework.Eventually(t, "pods can be created for the other tenant", func() error {
		return cluster.Get(t.Context(), client.ObjectKey{Namespace: "evicts-other", Name: "default"}, &corev1.ServiceAccount{})
	})
	for app, available := range map[string]int32{"guarded": 100, "half": 1} {
		cluster.Apply(t, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app, Namespace: w.name}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(available)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}})
	}
	for _, name := range []string{"once", "once-equal", "once-cordoned", "namesake"} {
		w.bind(t, w.claim(t, name, corev1.ReadWriteOncePod), "")
	}
	for _, name := range []string{"any-1", "any-2", "any-3"} {
		w.bind(t, w.claim(t, name, corev1.ReadWriteMany), "")
	}
	w.bind(t, w.claim(t, "in-a", corev1.ReadWriteMany), w.zone("a"))
	w.unbound(t, "fresh", w.storageClass(t, "fresh", w.driver(), storagev1.VolumeBindingWaitForFirstConsumer, "a"))
	w.unbound(t, "unbound", w.storageClass(t, "immediate", w.driver(), storagev1.VolumeBindingImmediate))
	for _, e := range evictions {
		e.setUp(t, w)
	}
	w.awaitNodes(t)
	for _, e := range evictions {
		for node := range e.nodes {
			// The scheduler places a pod on each node, which shows that it knows the node.
			w.start(t, "", corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: w.name + "-" + e.name + "-" + node}, PriorityClassName: "fit-polite",
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{container("app", nil)},
			})
		}
	}
	for _, p := range w.awaitAll(t, "ready", func(p *corev1.Pod) bool { return pods.IsConditionTrue(p, corev1.PodReady) }) {
		if p.Labels["app"] == "leaving" {
			cluster.Delete(t, &p)
		}
	}
	framework.Eventually(t, "one of two pods may be evicted", func() error {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "half", Namespace: w.name}}
		if cluster.Refresh(t, b); b.Status.DisruptionsAllowed != 1 || b.Status.ExpectedPods != 2 {
			return fmt.Errorf("%+v", b.Status)
		}
		return nil
	})
	says := map[string]answered{}
	for _, e := range evictions {
		says[e.name] = w.ask(t, manifest(t, e.pod(w)))
	}
	for _, e := range evictions {
		if err := cluster.Create(t.Context(), e.pod(w)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range evictions {
		t.Run(e.name, func(t *testing.T) { e.assert(t, w, says[e.name]) })
	}
}

// assert compares the answer of pools fit about a case with the scheduler, and both with the expectation.
func (e eviction) assert(t *testing.T, w *storageWorld, says answered) {
	t.Helper()
	p := e.pod(w)
	framework.Eventually(t, "the scheduler has decided", func() error {
		cluster.Refresh(t, p)
		if p.Spec.NodeName == "" && unschedulable(p) == "" {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
	prefix := w.name + "-" + e.name + "-"
	nominated := strings.TrimPrefix(p.Status.NominatedNodeName, prefix)
	if (p.Spec.NodeName != "") != e.fits || nominated != e.node && (e.node != "*" || nominated == "") {
		t.Errorf("the scheduler places the pod on %q and nominates %q, want %t and %q: %s", p.Spec.NodeName, nominated, e.fits, e.node, unschedulable(p))
	}
	if says.Copies != 0 || len(says.AtMost) > 0 {
		t.Errorf("pools fit says %+v, want no copy: preemption does not count as room", says)
	}
	is := says.Preemption
	if nominated == "" {
		if is != nil {
			t.Errorf("pools fit says %+v, and the scheduler evicts nothing", is)
		}
		if evicted, _ := e.evicted(t); len(evicted) > 0 {
			t.Errorf("the scheduler evicts %v, want none", evicted)
		}
		e.assertUnderway(t, w, "")
		return
	}
	framework.Eventually(t, "the scheduler has evicted the pods", func() error {
		if _, apps := e.evicted(t); !maps.Equal(apps, e.victims) {
			return fmt.Errorf("it has evicted %v, want %v", apps, e.victims)
		}
		return nil
	})
	names, _ := e.evicted(t)
	switch {
	case is == nil:
		t.Errorf("pools fit says nothing about preemption, and the scheduler evicts %s on %s", names, nominated)
	case is.Node != p.Status.NominatedNodeName && !slices.Contains(is.EqualNodes, p.Status.NominatedNodeName):
		t.Errorf("pools fit says %+v, and the scheduler nominates %s", is, nominated)
	case is.Node == p.Status.NominatedNodeName && !slices.Equal(namesOf(is), names):
		t.Errorf("pools fit says %+v, and the scheduler evicts %s", is, names)
	case is.BudgetViolations == nil || *is.BudgetViolations != e.violations || is.CopiesAfter != e.after || is.Underway:
		t.Errorf("pools fit says %+v, want %d violations and %d copies after", is, e.violations, e.after)
	}
	e.assertUnderway(t, w, p.Status.NominatedNodeName)
}

// evicted returns the pods of a case that the scheduler has evicted, or that were being deleted
// before, and the number of them of each app.
func (e eviction) evicted(t *testing.T) (names []string, apps map[string]int) {
	t.Helper()
	all := &corev1.PodList{}
	if err := cluster.List(t.Context(), all, client.MatchingLabels{caseLabel: e.name}); err != nil {
		t.Fatal(err)
	}
	apps = map[string]int{}
	for i := range all.Items {
		p := &all.Items[i]
		c := pods.Condition(p, corev1.DisruptionTarget)
		if !p.DeletionTimestamp.IsZero() && (p.Labels["app"] == "leaving" || c != nil && c.Reason == corev1.PodReasonPreemptionByScheduler) {
			names = append(names, p.Name)
			apps[p.Labels["app"]]++
		}
	}
	slices.Sort(names)
	return names, apps
}

// assertUnderway checks what pools pending says about the case after the scheduler has decided.
func (e eviction) assertUnderway(t *testing.T, w *storageWorld, node string) {
	t.Helper()
	framework.Eventually(t, "pools pending knows what the scheduler does", func() error {
		synced(t)
		groups := w.pending(t, 2)
		for _, g := range groups {
			switch p := g.Preemption; {
			case g.Namespace != w.name || !slices.Contains(g.Pods, "needs-"+e.name):
			case node == "" && p != nil, node != "" && (p == nil || p.Node != node || !p.Underway && e.name != "terminating" || p.Pod != "needs-"+e.name):
				return fmt.Errorf("%+v, want %q", p, node)
			default:
				return nil
			}
		}
		if !e.fits {
			return fmt.Errorf("%+v", groups)
		}
		return nil
	})
}
