// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// cached is what the cache has of a pod.
func cached(uid types.UID, m *podMaker) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{NodeName: "n1"}}
	if c := Summarize(&m.pod); c != nil {
		pod.Status.Conditions = append(pod.Status.Conditions, *c)
	}
	return pod
}

// observed is an observer and what it has counted.
type observed struct {
	*observer
	registry *prometheus.Registry
}

func newObserved(t *testing.T) observed {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	return observed{newObserver(m, func(node string) string { return "pool of " + node }), registry}
}

// histogram is one series of what was counted.
type histogram struct {
	Count           uint64
	Sum             float64
	Classic, Native bool
}

// histograms returns what was counted, by pool and stage.
func (o observed) histograms(t *testing.T) map[string]histogram {
	t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]histogram{}
	for _, f := range families {
		for _, m := range f.Metric {
			all[fmt.Sprint(m.Label[0].GetValue(), "/", m.Label[1].GetValue())] = histogram{
				Count: m.Histogram.GetSampleCount(), Sum: m.Histogram.GetSampleSum(),
				Classic: len(m.Histogram.Bucket) > 0, Native: m.Histogram.Schema != nil && len(m.Histogram.PositiveSpan) > 0,
			}
		}
	}
	return all
}

// count returns how many pods were counted.
func (o observed) count(t *testing.T) uint64 {
	t.Helper()
	return o.histograms(t)["pool of n1/ready"].Count
}

func TestObserverCountsOnce(t *testing.T) {
	starting := func() *podMaker { return aPod().is(corev1.PodScheduled, 1) }
	notReady := up().with(func(p *corev1.Pod) { p.Status.Conditions[3].Status = corev1.ConditionFalse })
	again := up().with(func(p *corev1.Pod) { p.Status.Conditions[3].LastTransitionTime = at(500) })
	leads := func(seconds int) func(observed) { return func(o observed) { o.lead(at(seconds).Time) } }
	finds := func(m *podMaker) func(observed) { return func(o observed) { o.add(cached("1", m), true) } }
	comes := func(m *podMaker) func(observed) { return func(o observed) { o.add(cached("1", m), false) } }
	sees := func(m *podMaker) func(observed) { return func(o observed) { o.change(cached("1", m)) } }
	for _, tt := range []struct {
		name  string
		steps []func(observed)
		want  uint64
	}{
		{name: "a pod comes up", steps: []func(observed){leads(0), comes(aPod()), sees(starting()), sees(up())}, want: 1},
		{name: "and is seen again", steps: []func(observed){leads(0), comes(up()), sees(up())}, want: 1},
		{name: "ready when first seen, after the manager", steps: []func(observed){leads(0), comes(up())}, want: 1},
		{name: "flapping", steps: []func(observed){leads(0), comes(up()), sees(notReady), sees(again)}, want: 1},
		{name: "ready before the manager started", steps: []func(observed){finds(up()), leads(0), sees(up())}},
		{name: "ready before the manager started, by a clock that is ahead", steps: []func(observed){leads(0), finds(up())}},
		{name: "flapping since before the manager started", steps: []func(observed){finds(notReady), leads(0), sees(again)}},
		{name: "on its way when the manager started", steps: []func(observed){finds(starting()), leads(2), sees(up())}, want: 1},
		{name: "a container restarts on the way", steps: []func(observed){leads(0), comes(starting().container(corev1.ContainerStatus{State: running(9), RestartCount: 1})), sees(up())}, want: 1},
		{name: "gone on its way", steps: []func(observed){leads(0), comes(starting())}},
		{name: "a standby does not count", steps: []func(observed){comes(starting()), sees(up())}},
		{name: "nor does it catch up", steps: []func(observed){comes(up()), leads(40), sees(up())}},
		{name: "what the forerunner has counted and we see late", steps: []func(observed){comes(starting()), leads(40), sees(up())}},
		{name: "in the second in which we began to lead", steps: []func(observed){comes(starting()), leads(31), sees(up())}},
		{name: "in the next", steps: []func(observed){comes(starting()), leads(30), sees(up())}, want: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newObserved(t)
			for _, step := range tt.steps {
				step(o)
			}
			if got := o.count(t); got != tt.want {
				t.Errorf("counted %d times, want %d", got, tt.want)
			}
			o.remove(cached("1", up()))
			if len(o.awaited) > 0 {
				t.Error("a pod that is gone is remembered")
			}
		})
	}
}

func TestHistograms(t *testing.T) {
	o := newObserved(t)
	o.lead(at(0).Time)
	for i := range 3 {
		o.add(cached(types.UID(fmt.Sprint(i)), up()), false)
	}
	o.add(cached("x", up().with(dropCondition(corev1.PodInitialized))), false)
	want := func(count uint64, sum float64) histogram {
		return histogram{Count: count, Sum: sum, Classic: true, Native: true}
	}
	if diff := cmp.Diff(map[string]histogram{
		"pool of n1/scheduled": want(4, 4), "pool of n1/initialized": want(3, 6), "pool of n1/containers_started": want(3, 12),
		"pool of n1/containers_ready": want(4, 32), "pool of n1/ready": want(4, 64),
	}, o.histograms(t)); diff != "" {
		t.Errorf("histograms (-want +got):\n%s", diff)
	}
	if len(o.awaited) > 0 {
		t.Errorf("of %d pods that are counted something is kept", len(o.awaited))
	}
	o.metrics.forget("pool of n1")
	if left := o.histograms(t); len(left) > 0 {
		t.Errorf("a pool that is gone has %d series", len(left))
	}
}

func TestPoolOf(t *testing.T) {
	pool := func(name string, created int, selector *tidekeeperv1.NodeSelector) tidekeeperv1.NodePool {
		return tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(created)}, Spec: tidekeeperv1.NodePoolSpec{Selector: selector}}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"node-role.kubernetes.io/worker": "", "zone": "a"}}}
	zoneA := &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"zone": "a"}}
	notB := &tidekeeperv1.NodeSelector{MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{
		{Key: "zone", Operator: metav1.LabelSelectorOpNotIn, Values: []tidekeeperv1.LabelValue{"b"}},
	}}
	for _, tt := range []struct {
		name  string
		pools []tidekeeperv1.NodePool
		want  string
	}{
		{name: "no pools"},
		{name: "of another role", pools: []tidekeeperv1.NodePool{pool("infra", 0, nil)}},
		{name: "by role", pools: []tidekeeperv1.NodePool{pool("infra", 0, nil), pool("worker", 1, nil)}, want: "worker"},
		{name: "by selector", pools: []tidekeeperv1.NodePool{pool("a", 0, zoneA)}, want: "a"},
		{name: "by expression", pools: []tidekeeperv1.NodePool{pool("not-b", 0, notB)}, want: "not-b"},
		{name: "an empty selector selects none", pools: []tidekeeperv1.NodePool{pool("a", 0, &tidekeeperv1.NodeSelector{})}},
		{name: "the oldest", pools: []tidekeeperv1.NodePool{pool("a", 2, zoneA), pool("worker", 1, nil)}, want: "worker"},
		{name: "of two equally old ones the first by name", pools: []tidekeeperv1.NodePool{pool("worker", 1, nil), pool("a", 1, zoneA)}, want: "a"},
	} {
		if got := poolOf(node, tt.pools); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
