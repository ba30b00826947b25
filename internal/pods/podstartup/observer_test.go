// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// at returns the time that is the given number of seconds after the epoch, when all pods are
// created.
func at(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

// cached returns a pod in the form that the cache stores, with the given summary condition, if any.
func cached(uid types.UID, summary ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Conditions: summary},
	}
}

// ready returns the summary condition of a pod that has been Ready since the given second and whose
// stages have the given durations.
func ready(since int, stages string) corev1.PodCondition {
	return corev1.PodCondition{
		Type: podtimeline.SummaryCondition, Status: corev1.ConditionTrue, LastTransitionTime: at(since), Message: stages,
	}
}

// observed is an observer together with its metrics registry.
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

// histogram holds the content of a histogram series.
type histogram struct {
	Count           uint64
	Sum             float64
	Classic, Native bool
}

// histograms returns the content of all series, keyed by node pool and stage.
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

// count returns the number of counted pods on the node n1.
func (o observed) count(t *testing.T) uint64 {
	t.Helper()
	return o.histograms(t)["pool of n1/ready"].Count
}

func TestObserverCountsOnce(t *testing.T) {
	starting := []corev1.PodCondition(nil)
	mayHaveBeenReady := []corev1.PodCondition{{Type: podtimeline.SummaryCondition, Status: corev1.ConditionFalse}}
	up := []corev1.PodCondition{ready(31, "1,2,4,8,16")}
	again := []corev1.PodCondition{ready(500, "1,2,4,8,485")}
	leads := func(seconds int) func(observed) { return func(o observed) { o.lead(at(seconds).Time) } }
	finds := func(summary []corev1.PodCondition) func(observed) {
		return func(o observed) { o.add(cached("1", summary...), true) }
	}
	comes := func(summary []corev1.PodCondition) func(observed) {
		return func(o observed) { o.add(cached("1", summary...), false) }
	}
	sees := func(summary []corev1.PodCondition) func(observed) {
		return func(o observed) { o.update(cached("1", summary...)) }
	}
	for _, tt := range []struct {
		name  string
		steps []func(observed)
		want  uint64
	}{
		{name: "a pod starts", steps: []func(observed){leads(0), comes(starting), sees(starting), sees(up)}, want: 1},
		{name: "and changes again", steps: []func(observed){leads(0), comes(up), sees(up)}, want: 1},
		{name: "ready when first seen, after the manager", steps: []func(observed){leads(0), comes(up)}, want: 1},
		{name: "flapping", steps: []func(observed){leads(0), comes(up), sees(mayHaveBeenReady), sees(again)}, want: 1},
		{name: "ready before the manager started", steps: []func(observed){finds(up), leads(0), sees(up)}},
		{name: "ready before the manager started, by a clock that is ahead", steps: []func(observed){leads(0), finds(up)}},
		{name: "flapping since before the manager started", steps: []func(observed){finds(mayHaveBeenReady), leads(0), sees(again)}},
		{name: "starting when the manager started", steps: []func(observed){finds(starting), leads(2), sees(up)}, want: 1},
		{name: "a container restarts during the start-up", steps: []func(observed){leads(0), comes(mayHaveBeenReady), sees(up)}, want: 1},
		{name: "gone while starting", steps: []func(observed){leads(0), comes(starting)}},
		{name: "a standby does not count", steps: []func(observed){comes(starting), sees(up)}},
		{name: "nor does it catch up", steps: []func(observed){comes(up), leads(40), sees(up)}},
		{name: "counted by the predecessor, and seen late", steps: []func(observed){comes(starting), leads(40), sees(up)}},
		{name: "in the second in which the manager began to lead", steps: []func(observed){comes(starting), leads(31), sees(up)}},
		{name: "in the next", steps: []func(observed){comes(starting), leads(30), sees(up)}, want: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newObserved(t)
			for _, step := range tt.steps {
				step(o)
			}
			if got := o.count(t); got != tt.want {
				t.Errorf("counted %d times, want %d", got, tt.want)
			}
			o.remove(cached("1"))
			if len(o.awaited) > 0 {
				t.Error("a deleted pod is remembered")
			}
		})
	}
}

func TestHistograms(t *testing.T) {
	o := newObserved(t)
	o.lead(at(0).Time)
	for i := range 3 {
		o.add(cached(types.UID(fmt.Sprint(i)), ready(31, "1,2,4,8,16")), false)
	}
	o.add(cached("x", ready(31, "1,-,-,8,16")), false)
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
		t.Errorf("%d counted pods are remembered", len(o.awaited))
	}
	o.metrics.forget("pool of n1")
	if left := o.histograms(t); len(left) > 0 {
		t.Errorf("a pool that is gone has %d series", len(left))
	}
}
