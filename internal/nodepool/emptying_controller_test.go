// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// emptyingServer is an API server with a node that is closed for a pool's taint gpu:NoExecute, and
// the model of this node. It records the requested evictions.
type emptyingServer struct {
	client.WithWatch
	scheme  *runtime.Scheme
	cluster *state.Cluster
	node    *corev1.Node
	evicted []string
	held    *period.Period
	// refuse returns the error for the eviction of a pod, or nil to accept it.
	refuse func(pod string) error
}

func newEmptyingServer(t *testing.T, pods ...*corev1.Pod) *emptyingServer {
	t.Helper()
	s := &emptyingServer{
		scheme: runtime.NewScheme(), cluster: state.NewCluster(), refuse: func(string) error { return nil },
		node: objects.Node("n").Role("a").TaintOf("a", "gpu", "", objects.NoSchedule).Closed("a", "gpu", objects.PatchTime.Add(-time.Hour)).Obj(),
	}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, tidekeeperv1.AddToScheme} {
		if err := add(s.scheme); err != nil {
			t.Fatal(err)
		}
	}
	pool := objects.Pool("a").TaintWithinBudgets("gpu", "").Obj()
	builder := fake.NewClientBuilder().WithScheme(s.scheme).WithObjects(s.node.DeepCopy(), pool.DeepCopy()).
		WithIndex(&corev1.Pod{}, index.PodNode, index.PodsByNode().Values).
		WithIndex(&corev1.Node{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	for _, pod := range pods {
		builder.WithObjects(pod)
	}
	s.WithWatch = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, o, _ client.Object, _ ...client.SubResourceCreateOption) error {
			s.evicted = append(s.evicted, o.GetNamespace()+"/"+o.GetName())
			return s.refuse(o.GetName())
		},
	})
	s.cluster.SetPool(pool)
	s.cluster.SetNode(s.node)
	for _, pod := range pods {
		s.cluster.SetPod(pod)
	}
	return s
}

// emptying returns the reconciler that evicts pods, with its metrics and events.
func (s *emptyingServer) emptying(t *testing.T, at time.Time) (*emptyingReconciler, *events.FakeRecorder) {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry(), s.cluster)
	if err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(10)
	return &emptyingReconciler{
		client: s, apiReader: s, recorder: recorder, cluster: s.cluster, feed: &eventFeed{cluster: s.cluster}, metrics: m,
		clock: clocktesting.NewFakePassiveClock(at), memories: newEmptyingMemories(), minDuration: time.Minute,
		heldBack: func(context.Context, time.Time) (*period.Period, time.Duration, error) {
			return s.held, 3 * time.Second, nil
		},
	}, recorder
}

// replica returns a pod of a ReplicaSet on the node.
func replica(namespace, name, owner string) *corev1.Pod {
	pod := objects.Pod(name).On("n").Phase(corev1.PodRunning).Obj()
	pod.Namespace, pod.UID, pod.ResourceVersion = namespace, types.UID(namespace+"-"+name), ""
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID(namespace + "-" + owner), Controller: new(true)}}
	pod.CreationTimestamp = metav1.NewTime(objects.PatchTime.Add(-2 * time.Hour))
	return pod
}

func budgetRefusal(string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 2 healthy pods and has 2 currently"}}
	return err
}

// TestEvictsFromClosedNodes checks that pods are evicted while the node on the API server is closed
// as in the model, regardless of the cache.
func TestEvictsFromClosedNodes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		live    *corev1.Node
		evicted []string
	}{
		{"closed as before", nil, []string{"shop/web-1", "shop/web-2"}},
		{"open again", objects.Node("n").Role("a").Obj(), nil},
		{"closed again", objects.Node("n").Role("a").TaintOf("a", "gpu", "", objects.NoSchedule).Closed("a", "gpu", objects.PatchTime).Obj(), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newEmptyingServer(t, replica("shop", "web-1", "web"), replica("shop", "web-2", "web"))
			if tc.live != nil {
				tc.live.ResourceVersion = ""
				if err := s.Update(t.Context(), tc.live); err != nil {
					t.Fatal(err)
				}
			}
			r, _ := s.emptying(t, objects.PatchTime)
			_, err := r.Reconcile(t.Context(), requestFor("n"))
			if diff := cmp.Diff(tc.evicted, s.evicted, cmpopts.EquateEmpty()); diff != "" || apierrors.IsConflict(err) != (tc.live != nil) {
				t.Errorf("error %v; evicted pods (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestFreezeHoldsBackEvictions checks that no pod is evicted while a freeze is in force, and that
// the node does not count as blocked.
func TestFreezeHoldsBackEvictions(t *testing.T) {
	s := newEmptyingServer(t, replica("shop", "web-1", "web"))
	s.held = &period.Period{Name: "sale"}
	r, _ := s.emptying(t, objects.PatchTime)
	for range 4 {
		result, err := r.Reconcile(t.Context(), requestFor("n"))
		if v, _ := s.cluster.Pool("a"); err != nil || len(s.evicted) > 0 || result.RequeueAfter != 3*time.Second || v.Blocked > 0 {
			t.Fatalf("evicted %v, again after %s, %d nodes are blocked: %v", s.evicted, result.RequeueAfter, v.Blocked, err)
		}
		r.clock = clocktesting.NewFakePassiveClock(r.clock.Now().Add(time.Minute))
	}
	s.held = nil
	if _, err := r.Reconcile(t.Context(), requestFor("n")); err != nil || len(s.evicted) != 1 {
		t.Errorf("when the freeze is over, evicted %v: %v", s.evicted, err)
	}
}

// TestRefusedEvictions checks that refused evictions cost only one request for each group of pods
// and a few requests for each namespace, that they are retried later, and that the node counts as
// blocked, once, after two minutes without progress.
func TestRefusedEvictions(t *testing.T) {
	pods := []*corev1.Pod{replica("shop", "web-1", "web"), replica("shop", "web-2", "web")}
	for i := range 10 {
		pods = append(pods, replica("flood", fmt.Sprint("x-", i), fmt.Sprint("x-", i)))
	}
	s := newEmptyingServer(t, pods...)
	s.refuse = budgetRefusal
	r, recorder := s.emptying(t, objects.PatchTime)
	result, err := r.Reconcile(t.Context(), requestFor("n"))
	want := []string{"flood/x-0", "shop/web-1", "flood/x-1", "flood/x-2", "flood/x-3"}
	if diff := cmp.Diff(want, s.evicted); diff != "" || err != nil {
		t.Errorf("error %v; asked to evict (-want +got):\n%s", err, diff)
	}
	if result.RequeueAfter != time.Second {
		t.Errorf("again after %s", result.RequeueAfter)
	}
	if v, _ := s.cluster.Pool("a"); v.Emptying != 1 || v.Blocked != 0 {
		t.Errorf("%d nodes are being emptied, %d are blocked", v.Emptying, v.Blocked)
	}
	for range 3 {
		r.clock = clocktesting.NewFakePassiveClock(r.clock.Now().Add(time.Minute))
		if _, err := r.Reconcile(t.Context(), requestFor("n")); err != nil {
			t.Fatal(err)
		}
	}
	if web := slices.DeleteFunc(s.evicted, func(name string) bool { return !strings.HasPrefix(name, "shop") }); !cmp.Equal(web, []string{"shop/web-1", "shop/web-2", "shop/web-1", "shop/web-2"}) {
		t.Errorf("later, asked to evict %v", web)
	}
	v, _ := s.cluster.Pool("a")
	got := v.LongestBlocked
	if v.Blocked != 1 || got == nil || got.Node != "n" || got.Pods != 12 || !got.Since.Equal(&metav1.Time{Time: objects.PatchTime}) || got.Message != "The disruption budget web needs 2 healthy pods and has 2 currently" {
		t.Errorf("%d nodes are blocked: %+v", v.Blocked, got)
	}
	close(recorder.Events)
	var told []string
	for event := range recorder.Events {
		told = append(told, event)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "Warning EvictionBlocked node n cannot be emptied within budgets: 12 pods are left, for instance flood/x-0: The disruption budget") {
		t.Errorf("events: %q", told)
	}
}

// TestEvictionsStopOnErrors checks that no further evictions are requested after an API server
// error, and that the error is reported as the reason why the node is blocked.
func TestEvictionsStopOnErrors(t *testing.T) {
	s := newEmptyingServer(t, replica("shop", "web-1", "web"), replica("other", "db-1", "db"))
	s.refuse = func(string) error {
		return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q", "deny.example.com"))
	}
	r, _ := s.emptying(t, objects.PatchTime)
	for range 4 {
		s.evicted = nil
		if _, err := r.Reconcile(t.Context(), requestFor("n")); err != nil || len(s.evicted) != 1 {
			t.Fatalf("asked to evict %v: %v", s.evicted, err)
		}
		r.clock = clocktesting.NewFakePassiveClock(r.clock.Now().Add(time.Minute))
	}
	if v, _ := s.cluster.Pool("a"); v.LongestBlocked == nil || !strings.Contains(v.LongestBlocked.Message, `failed calling webhook "deny.example.com"`) {
		t.Errorf("blocked: %+v", v.LongestBlocked)
	}
}

// TestTaintLooksAtTheAPIServer checks that a node is not tainted while the API server has a pod
// that the taint would delete, even if the cache does not have the pod.
func TestTaintLooksAtTheAPIServer(t *testing.T) {
	s := newEmptyingServer(t)
	hidden := replica("shop", "web-1", "web")
	if err := s.Create(t.Context(), hidden); err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(prometheus.NewRegistry(), s.cluster)
	if err != nil {
		t.Fatal(err)
	}
	r := &nodeReconciler{
		client: s, apiReader: s, cluster: s.cluster, feed: &eventFeed{cluster: s.cluster}, metrics: m, clock: clocktesting.NewFakePassiveClock(objects.PatchTime),
		frozen: func(context.Context) (*period.Period, error) { return nil, nil },
	}
	taints := func() []corev1.Taint {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), requestFor("n")); err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(s.node), node); err != nil {
			t.Fatal(err)
		}
		return node.Spec.Taints
	}
	s.cluster.Emptying.AllowTaints("a", "n")
	if got := taints(); len(got) != 1 || got[0].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("with a pod on it, the node has %v", got)
	}
	if got := taints(); got[0].Effect != corev1.TaintEffectNoSchedule {
		t.Error("the permission was not withdrawn")
	}
	if err := s.Delete(t.Context(), hidden); err != nil {
		t.Fatal(err)
	}
	s.cluster.Emptying.AllowTaints("a", "n")
	if got := taints(); len(got) != 1 || got[0].Effect != corev1.TaintEffectNoExecute {
		t.Errorf("without pods, the node has %v", got)
	}
}

// TestEmptyingMemory checks that a node counts as blocked after a period without progress, and that
// the period starts again after progress or a freeze.
func TestEmptyingMemory(t *testing.T) {
	at := func(seconds int) time.Time { return objects.PatchTime.Add(time.Duration(seconds) * time.Second) }
	m := newEmptyingMemories().of("n", nil, at(0))
	stuck := func(left int) *plan.EmptyingPlan { return &plan.EmptyingPlan{Left: left, Stays: "shop/web-1"} }
	for i, step := range []struct {
		seconds int
		plan    *plan.EmptyingPlan
		since   time.Time
		began   bool
	}{
		{59, stuck(3), time.Time{}, false},
		{60, stuck(3), at(0), true},
		{90, stuck(3), at(0), false},
		{100, stuck(2), time.Time{}, false},
		{160, stuck(2), at(100), true},
		{170, &plan.EmptyingPlan{Left: 2}, time.Time{}, false},
		{180, stuck(2), at(100), true},
	} {
		since, began := m.look(step.plan, time.Minute, at(step.seconds))
		if !since.Equal(step.since) || began != step.began {
			t.Errorf("step %d: blocked since %s, began is %t; want %s, %t", i, since, began, step.since, step.began)
		}
	}
	m.hold(at(200))
	if since, _ := m.look(stuck(2), time.Minute, at(259)); !since.IsZero() {
		t.Errorf("just after a freeze it is blocked since %s", since)
	}
}
