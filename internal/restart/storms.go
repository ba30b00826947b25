// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// stormRows is the maximum number of ScheduledRestarts that have their own series, since tenants
// control the number of ScheduledRestarts and the names in the labels.
const stormRows = 20

const stormHelp = "ScheduledRestarts whose ConfigMaps or Secrets keep changing, so that one restart after the other waits for minIntervalSeconds: 1 for each of 20 of them, with the object that changed last and the field managers that write it, and the number of all others as the one that has no name. Counted by the leader."

var stormDesc = prometheus.NewDesc("tidekeeper_restart_storm", stormHelp, []string{"namespace", "name", "object", "writer"}, nil)

// storms exports a metric of the ScheduledRestarts with the condition RestartStorm=True, labeled
// with the object that keeps changing.
type storms struct{ memories *memories }

// observe updates the series of a ScheduledRestart after a decision. It changes the series only
// when the condition changes, or if this process has no series for it yet.
func (s *storms) observe(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, status *tidekeeperv1.ScheduledRestartStatus, in *decision.Input) {
	is := meta.FindStatusCondition(status.Conditions, tidekeeperv1.ConditionRestartStorm)
	was := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionRestartStorm)
	s.memories.with(key, func(m *memory) {
		switch {
		case is == nil:
			m.storm = nil
		case in.Config == nil && m.storm == nil:
			m.storm = &decision.Source{}
		case in.Config != nil && (m.storm == nil || m.storm.Kind == 0 || was == nil || was.Message != is.Message):
			m.storm = new(in.Config.Source)
		}
	})
}

// Describe implements [prometheus.Collector].
func (s *storms) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- stormDesc }

// Collect implements [prometheus.Collector].
func (s *storms) Collect(metrics chan<- prometheus.Metric) {
	sources := map[types.NamespacedName]decision.Source{}
	s.memories.each(func(key types.NamespacedName, m *memory) {
		if m.storm != nil {
			sources[key] = *m.storm
		}
	})
	keys := slices.SortedFunc(maps.Keys(sources), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	// Sort the ScheduledRestarts so that the first of each namespace comes before the second of any
	// namespace, and so on. Otherwise one tenant could use up all series.
	place, before := map[types.NamespacedName]int{}, map[string]int{}
	for _, key := range keys {
		place[key] = before[key.Namespace]
		before[key.Namespace]++
	}
	slices.SortStableFunc(keys, func(a, b types.NamespacedName) int { return cmp.Compare(place[a], place[b]) })
	named := keys[:min(len(keys), stormRows)]
	for _, key := range named {
		source := sources[key]
		metrics <- prometheus.MustNewConstMetric(stormDesc, prometheus.GaugeValue, 1, key.Namespace, key.Name, source.Object(), source.Writer())
	}
	metrics <- prometheus.MustNewConstMetric(stormDesc, prometheus.GaugeValue, float64(len(keys)-len(named)), "", "", "", "")
}
