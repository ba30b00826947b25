// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// TestScheduleGauge checks for random changes and deletions that the metric counts each
// ScheduledRestart once, under its last reason, and has a series for every reason.
func TestScheduleGauge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		registry := prometheus.NewRegistry()
		memories := newMemories()
		m, err := newMetrics(registry, budget.New(0, 0), memories, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		last := map[types.NamespacedName]string{}
		for range rapid.IntRange(0, 50).Draw(t, "changes") {
			k := key("a", rapid.StringMatching("[a-d]").Draw(t, "name"))
			last[k] = rapid.SampledFrom(append([]string{""}, decision.ReadyReasons...)).Draw(t, "reason")
			if last[k] == "" {
				memories.forget(k)
				continue
			}
			m.schedules.set(k, last[k])
		}
		want := map[string]float64{}
		for _, reason := range decision.ReadyReasons {
			want[reason] = 0
		}
		for _, reason := range last {
			if reason != "" {
				want[reason]++
			}
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			if family.GetName() == "tidekeeper_restart_schedules" {
				for _, metric := range family.GetMetric() {
					got[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
