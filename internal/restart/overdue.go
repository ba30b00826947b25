// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

const overdueHelp = "ScheduledRestarts that have not succeeded for two of their own intervals, or since their pods reached maxPodAgeSeconds or the content for onConfigChange changed, and the time that their spec gives a restart, by namespace: of the 20 namespaces that have most of them, and of all others together as the namespace that has no name. Suspended ones do not count. Counted by the leader."

var overdueDesc = prometheus.NewDesc("tidekeeper_restart_overdue", overdueHelp, []string{"namespace"}, nil)

// overdue counts the ScheduledRestarts that have not restarted their targets for too long. It
// determines in advance when each of them becomes overdue, so that the count increases even if no
// further event arrives.
type overdue struct {
	clock    clock.PassiveClock
	memories *memories
}

// due caches the time at which a ScheduledRestart becomes overdue.
type due struct {
	// generation, first and age are the values from which the field "at" was last computed.
	// generation is that of the spec. first is the first tick (scheduled time) for which a restart
	// is missing. age is the earliest due time of a restart for pod age or for a change; zero if
	// none is due.
	generation int64
	first, age time.Time
	// at is the time at which the ScheduledRestart becomes overdue; zero means never.
	at time.Time
}

// observe computes and stores the time at which a ScheduledRestart becomes overdue, given the
// status that a decision resulted in.
func (o *overdue) observe(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, status *tidekeeperv1.ScheduledRestartStatus, in *decision.Input) {
	if in.Invalid != nil || restart.Spec.Suspend || in.Orphaned() {
		o.memories.with(key, func(m *memory) { m.overdue = due{} })
		return
	}
	first := decision.FirstUnserved(&restart.Spec, status, in.InWindows())
	var age time.Time
	// A restart for pod age or for a change of ConfigMaps and Secrets can become overdue
	// independently of the schedule. Determine the earliest due time of such a restart.
	for _, next := range []*metav1.Time{status.NextAgeTime, status.NextChangeTime} {
		if next != nil && (age.IsZero() || next.Time.Before(age)) {
			age = next.Time
		}
	}
	o.memories.with(key, func(m *memory) {
		before := m.overdue
		if before.generation == restart.Generation && before.first.Equal(first) && before.age.Equal(age) {
			return
		}
		at := decision.OverdueAt(&restart.Spec, first, in.InWindows())
		if old := decision.TooOldAt(&restart.Spec, age); at.IsZero() || !old.IsZero() && old.Before(at) {
			at = old
		}
		m.overdue = due{restart.Generation, first, age, at}
	})
}

// Describe implements [prometheus.Collector].
func (o *overdue) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- overdueDesc }

// Collect implements [prometheus.Collector].
func (o *overdue) Collect(metrics chan<- prometheus.Metric) {
	counts := map[string]float64{}
	now := o.clock.Now()
	o.memories.each(func(key types.NamespacedName, m *memory) {
		if at := m.overdue.at; !at.IsZero() && !now.Before(at) {
			counts[key.Namespace]++
		}
	})
	fairness.Collect(metrics, overdueDesc, counts)
}
