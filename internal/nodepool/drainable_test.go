// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// drainableWorld holds the pods and PodDisruptionBudgets that a drainableWorker reads, and the
// worker's clock.
type drainableWorld struct {
	*drainableWorker
	toolscache.Store // of budgets
	clock            *clocktesting.FakePassiveClock
	pods             map[string]*corev1.Pod
	hasher           *drain.Hasher
	err              error
}

func (w *drainableWorld) HasSynced() bool            { return true }
func (w *drainableWorld) GetStore() toolscache.Store { return w.Store }
func (w *drainableWorld) Facts() *drain.Hasher       { return w.hasher }

// cachedPod makes a pod implement the interface of [drain.CachedPod].
type cachedPod corev1.Pod

func (p *cachedPod) Pod() *corev1.Pod { return (*corev1.Pod)(p) }

// EachNode implements podsByNode.
func (w *drainableWorld) EachNode(on func(string) bool, do func(string, []drain.CachedPod)) error {
	byNode := map[string][]drain.CachedPod{}
	for _, pod := range w.pods {
		if on(pod.Spec.NodeName) {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], drain.CachedPod{
				PodKind: drain.PodKind{Namespace: unique.Make(pod.Namespace), Facts: w.hasher.Facts(pod), Ready: true, Shared: pod},
				Name:    pod.Name, Deleted: pod.DeletionTimestamp, Source: (*cachedPod)(pod),
			})
		}
	}
	for node, running := range byNode {
		do(node, running)
	}
	return w.err
}

// newDrainableWorld returns a world with a pool of two nodes, which have room for four pods with 1
// CPU each.
func newDrainableWorld(t *testing.T, pool *tidekeeperv1.NodePool) *drainableWorld {
	t.Helper()
	cluster := state.NewCluster()
	feed := &eventFeed{cluster: cluster}
	w := &drainableWorld{
		Store: toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), clock: clocktesting.NewFakePassiveClock(objects.Epoch.Add(24 * time.Hour)),
		pods: map[string]*corev1.Pod{}, hasher: drain.NewHasher(maphash.MakeSeed()),
	}
	w.drainableWorker = &drainableWorker{
		cluster: cluster, feed: feed, clock: w.clock, pods: w, budgets: w, answers: answers{conditionType: tidekeeperv1.ConditionDrainable},
	}
	cluster.SetPool(pool)
	for _, name := range []string{"n0", "n1"} {
		cluster.SetNode(headroomNode(name, ""))
	}
	return w
}

// put adds or replaces a pod of the ReplicaSet web.
func (w *drainableWorld) put(name, node string, change func(*corev1.Pod)) {
	pod := headroomPod(name, node, "1")
	pod.Namespace, pod.Labels = "shop", map[string]string{"app": "web"}
	pod.Status.Phase = corev1.PodRunning
	if change != nil {
		change(pod)
	}
	w.pods[name] = pod
	w.cluster.SetPod(pod)
}

func (w *drainableWorld) drop(name string) {
	w.cluster.DeletePod(w.pods[name].UID)
	delete(w.pods, name)
}

// allow sets the disruptions that the PodDisruptionBudget of the pods with the label app=web
// allows, since an hour ago.
func (w *drainableWorld) allow(t *testing.T, allowed int32) {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, DesiredHealthy: 2, CurrentHealthy: 2, ExpectedPods: 2},
	}
	if allowed == 0 {
		budget.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-time.Hour)),
		}}
	}
	cached, err := drain.CachedBudgetOf(budget)
	if err == nil {
		err = w.Update(cached)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// after advances the clock, evaluates the pools, and returns the pool's condition.
func (w *drainableWorld) after(t *testing.T, d time.Duration, pool *tidekeeperv1.NodePool) *metav1.Condition {
	t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	if err := w.work(); err != nil {
		t.Fatal(err)
	}
	return w.condition(pool)
}

// drainablePool returns a pool whose spec enables the evaluation of whether its nodes can be
// drained.
func drainablePool(ignored ...tidekeeperv1.DrainBlocker) *tidekeeperv1.NodePool {
	pool := headroomPool(0, 0)
	pool.Spec.Headroom, pool.Spec.Drainable = nil, &tidekeeperv1.Drainable{Ignore: ignored}
	return pool
}

func alone(p *corev1.Pod) { p.OwnerReferences = nil }

func TestDrainableCondition(t *testing.T) {
	refuse := func(t *testing.T, w *drainableWorld) { w.allow(t, 0) }
	many := func(p *corev1.Pod) {
		for i := range 100 {
			p.Labels[fmt.Sprint(i)] = ""
		}
	}
	each := func(change func(*corev1.Pod), nodes ...string) func(*testing.T, *drainableWorld) {
		return func(_ *testing.T, w *drainableWorld) {
			for i, node := range nodes {
				w.put(fmt.Sprint("p", i), node, change)
			}
		}
	}
	both := func(first, second func(*testing.T, *drainableWorld)) func(*testing.T, *drainableWorld) {
		return func(t *testing.T, w *drainableWorld) { first(t, w); second(t, w) }
	}
	emptyDir := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	for _, tt := range []struct {
		name    string
		pool    *tidekeeperv1.NodePool
		change  func(*testing.T, *drainableWorld)
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{"nothing in the way", drainablePool(), each(nil, "n0", "n1"), metav1.ConditionTrue, "PodsLeave", "all pods would leave any one node that is drained; volumes and webhooks are not evaluated"},
		{"a budget", drainablePool(), both(refuse, each(nil, "n0", "n0", "n1")), metav1.ConditionFalse, "PodsStay",
			"2 of 2 nodes have pods that would not leave a drain, or not without harm: 3 pods of ReplicaSet/web in the namespace shop on node n0 and 1 more: " +
				"the PodDisruptionBudget web has allowed no disruption since " + objects.Epoch.Add(23*time.Hour).UTC().Format(time.RFC3339) + "; see kubectl tide pools blockers a"},
		{"a budget that the pool ignores", drainablePool("Budget"), both(refuse, each(nil, "n0")), metav1.ConditionTrue, "PodsLeave", ""},
		{"a bare pod, and a budget", drainablePool(), both(both(refuse, each(nil, "n0", "n1")), func(_ *testing.T, w *drainableWorld) { w.put("bare", "n1", alone) }), metav1.ConditionFalse, "PodsStay",
			"2 of 2 nodes have pods that would not leave a drain, or not without harm: 2 pods of ReplicaSet/web in the namespace shop on node n0 and 1 more: " +
				"the PodDisruptionBudget web has allowed no disruption since " + objects.Epoch.Add(23*time.Hour).UTC().Format(time.RFC3339) + "; and 2 more causes; see kubectl tide pools blockers a"},
		{"a bare pod", drainablePool(), each(alone, "n1"), metav1.ConditionFalse, "PodsStay",
			"1 of 2 nodes has pods that would not leave a drain, or not without harm: 1 pod without a controller in the namespace shop on node n1: nothing creates it again; see kubectl tide pools blockers a"},
		{"local data", drainablePool(), each(emptyDir, "n1"), metav1.ConditionFalse, "PodsStay", ""},
		{"local data that the pool ignores", drainablePool("LocalData"), each(emptyDir, "n1"), metav1.ConditionTrue, "PodsLeave", ""},
		{"no place", drainablePool(), each(nil, "n0", "n0", "n0", "n0", "n1"), metav1.ConditionFalse, "PodsStay",
			"2 of 2 nodes have pods that would not leave a drain, or not without harm: 2 pods on node n0 and 1 more: no other node has room for them; see kubectl tide pools blockers a"},
		{"no place, which the pool ignores", drainablePool("NoPlace"), each(nil, "n0", "n0", "n0", "n0", "n1"), metav1.ConditionTrue, "PodsLeave", ""},
		{"a pod of another pool's node", drainablePool(), each(alone, "elsewhere"), metav1.ConditionTrue, "PodsLeave", ""},
		{"too many labels", drainablePool(), both(func(t *testing.T, w *drainableWorld) { w.allow(t, 1) }, each(many, "n0")), metav1.ConditionUnknown, "PartlyEvaluated",
			"it is not known which PodDisruptionBudgets select 1 pod, such as in the namespace shop, because of too many labels, requirements or budgets"},
		{"too many labels, and a bare pod", drainablePool(), both(func(t *testing.T, w *drainableWorld) { w.allow(t, 1) }, each(func(p *corev1.Pod) { many(p); alone(p) }, "n0")), metav1.ConditionFalse, "PodsStay",
			"1 of 2 nodes has pods that would not leave a drain, or not without harm: 1 pod without a controller in the namespace shop on node n0: nothing creates it again; " +
				"it is not known which PodDisruptionBudgets select 1 pod, such as in the namespace shop, because of too many labels, requirements or budgets; see kubectl tide pools blockers a"},
		{"no nodes", drainablePool(), func(_ *testing.T, w *drainableWorld) { w.cluster.DeleteNode("n0"); w.cluster.DeleteNode("n1") }, metav1.ConditionUnknown, "NoNodes", "the pool has no nodes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newDrainableWorld(t, tt.pool)
			tt.change(t, w)
			if got := w.condition(tt.pool); got.Status != metav1.ConditionUnknown || got.Reason != "NotEvaluated" {
				t.Errorf("at first it is %s, %s", got.Status, got.Reason)
			}
			got := w.after(t, 0, tt.pool)
			if got.Status != tt.status || got.Reason != tt.reason || tt.message != "" && got.Message != tt.message {
				t.Errorf("got %s, %s, %q; want %s, %s, %q", got.Status, got.Reason, got.Message, tt.status, tt.reason, tt.message)
			}
			v, _ := w.cluster.Pool(tt.pool.Name)
			status := newStatus(tt.pool, &v, "", asked{"Drainable": got}, tidekeeperv1.ManagedKeys{}, objects.Epoch)
			without := newStatus(tt.pool, &v, "", asked{"Drainable": nil}, tidekeeperv1.ManagedKeys{}, objects.Epoch)
			meta.RemoveStatusCondition(&status.Conditions, "Drainable")
			if diff := cmp.Diff(without, status); diff != "" {
				t.Errorf("the condition changes the rest of the status (-without +with):\n%s", diff)
			}
		})
	}
}

// TestDrainableTexts checks the reasons of blockers that other tests do not produce.
func TestDrainableTexts(t *testing.T) {
	for _, reason := range drain.Surveyed {
		text := reasonText(&drain.Group{Reason: reason, Object: "PodDisruptionBudget/web", Since: &metav1.Time{Time: objects.Epoch}})
		if text == string(reason) || strings.Contains(text, "%!") {
			t.Errorf("%s: %q", reason, text)
		}
	}
}

// TestDrainableSettles checks that the condition changes at most once a minute, except after an
// edit or after the clock was set back, and that a pool is queued only for a change.
func TestDrainableSettles(t *testing.T) {
	pool := drainablePool()
	w := newDrainableWorld(t, pool)
	w.put("a", "n0", nil)
	w.allow(t, 1)
	seen := w.after(t, 0, pool)
	for _, step := range []struct {
		name   string
		after  time.Duration
		change func()
		reason string
	}{
		{"without a change", time.Second, func() {}, "PodsLeave"},
		{"too early", time.Second, func() { w.allow(t, 0) }, "PodsLeave"},
		{"just too early", 57 * time.Second, func() {}, "PodsLeave"},
		{"after a minute", time.Second, func() {}, "PodsStay"},
		{"another pod", 30 * time.Second, func() { w.put("b", "n1", nil) }, "PodsStay"},
		{"and gone again", 29 * time.Second, func() { w.drop("b") }, "PodsStay"},
		{"a moment later", time.Second, func() {}, "PodsStay"},
		{"allowed again", time.Second, func() { w.allow(t, 1) }, "PodsLeave"},
		{"the clock is set back", -30 * time.Minute, func() { w.allow(t, 0) }, "PodsStay"},
		{"edited", time.Second, func() {
			pool = pool.DeepCopy()
			pool.Generation++
			pool.Spec.Drainable.Ignore = []tidekeeperv1.DrainBlocker{"Budget"}
			w.cluster.SetPool(pool)
		}, "PodsLeave"},
		{"another edit", time.Second, func() {
			pool = pool.DeepCopy()
			pool.Generation++
			pool.Spec.Drainable.Ignore = nil
			w.cluster.SetPool(pool)
		}, "PodsStay"},
	} {
		step.change()
		last, _ := w.answers.get(pool.Name)
		got := w.after(t, step.after, pool)
		if got.Reason != step.reason || got.ObservedGeneration != pool.Generation {
			t.Errorf("%s: %+v", step.name, got)
		}
		if is, _ := w.answers.get(pool.Name); (is != last) != (*got != *seen) {
			t.Errorf("%s: the answer was %+v and is %+v", step.name, last, is)
		}
		seen = got
	}
	pool = pool.DeepCopy()
	pool.Generation++
	pool.Spec.Drainable = nil
	w.cluster.SetPool(pool)
	if got := w.after(t, 0, pool); got != nil || len(w.tallies) > 0 {
		t.Errorf("it has not asked for %+v, and has %d tallies", got, len(w.tallies))
	}
}

// TestDrainableIsNotEvaluatedUnlessAsked checks that neither pods nor PodDisruptionBudgets are read
// if no pool's spec enables the evaluation, and that the last answer is kept after a failed
// evaluation.
func TestDrainableIsNotEvaluatedUnlessAsked(t *testing.T) {
	pool := drainablePool()
	w := newDrainableWorld(t, headroomPool(1, 0))
	w.err = errors.New("not synced")
	if err := w.work(); err != nil {
		t.Errorf("pods are read although no pool asks: %v", err)
	}
	w.cluster.SetPool(pool)
	if err := w.work(); !errors.Is(err, w.err) {
		t.Errorf("error %v", err)
	}
	if got := w.condition(pool); got.Reason != "NotEvaluated" {
		t.Errorf("%+v", got)
	}
	w.err = nil
	if got := w.after(t, 0, pool); got.Reason != "PodsLeave" {
		t.Errorf("%+v", got)
	}
}

func TestDrainableMetrics(t *testing.T) {
	w := newDrainableWorld(t, drainablePool("LongGrace", "Finalizer", "Terminating", "SeveralBudgets"))
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(drainableCollector{w.drainableWorker}); err != nil {
		t.Fatal(err)
	}
	if count, err := testutil.GatherAndCount(registry); count != 0 || err != nil {
		t.Errorf("%d values before an evaluation, %v", count, err)
	}
	w.allow(t, 0)
	w.put("a", "n0", nil)
	w.put("b", "n1", alone)
	if err := w.work(); err != nil {
		t.Fatal(err)
	}
	values := []string{"# TYPE tidekeeper_nodepool_drain_blocked_nodes gauge", `tidekeeper_nodepool_drain_blocked_nodes{pool="a"} 2`, "# TYPE tidekeeper_nodepool_drain_blockers gauge"}
	for _, of := range []string{"Budget 2", "LocalData 0", "NoController 1", "NoPlace 0", "NotEvaluated 0"} {
		reason, count, _ := strings.Cut(of, " ")
		values = append(values, fmt.Sprintf(`tidekeeper_nodepool_drain_blockers{pool="a",reason=%q} %s`, reason, count))
	}
	var got []string
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		got = append(got, "# TYPE "+f.GetName()+" gauge")
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			got = append(got, fmt.Sprintf("%s{%s} %g", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()))
		}
	}
	if diff := cmp.Diff(values, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
