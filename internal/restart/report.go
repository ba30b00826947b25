// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// reporter reports decisions through events, metrics and the log.
type reporter struct {
	recorder events.EventRecorder
	metrics  *metrics
	clock    clock.PassiveClock
	memories *memories
}

// report reports a decision that was carried out. before is the ScheduledRestart before the
// decision.
func (r *reporter) report(ctx context.Context, restart, before *tidekeeperv1.ScheduledRestart, d *decision.Output) {
	began := func(conditionType, reason string) *string {
		is, was := meta.FindStatusCondition(d.Status.Conditions, conditionType), meta.FindStatusCondition(before.Status.Conditions, conditionType)
		if is == nil || is.Reason != reason || was != nil && was.Reason == reason {
			return nil
		}
		return &is.Message
	}
	if message := began(tidekeeperv1.ConditionRestartStorm, tidekeeperv1.ReasonChangesKeepComing); message != nil {
		r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, tidekeeperv1.EventRestartStorm, "Reconcile", "%s", *message)
	}
	if message := began(tidekeeperv1.ConditionReady, tidekeeperv1.ReasonOrderCycle); message != nil {
		r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, tidekeeperv1.EventOrderCycle, "Reconcile", "%s", *message)
	}
	for i := range d.Records {
		ref := restart.Spec.TargetRef
		if d.Records[i].StartedTime != nil {
			ref = decision.TargetRef(before.Status.Active, &restart.Spec)
		}
		r.reportTick(ctx, restart, ref, &d.Records[i])
	}
}

// reportTick reports the outcome of a tick (the scheduled time of a restart) through the metrics,
// the log and an event.
func (r *reporter) reportTick(ctx context.Context, restart *tidekeeperv1.ScheduledRestart, ref tidekeeperv1.TargetRef, record *tidekeeperv1.RestartRecord) {
	r.metrics.ticks.WithLabelValues(string(record.Trigger), string(record.Outcome), record.Reason).Add(float64(1 + record.EarlierTicks))
	if record.StartedTime != nil {
		r.metrics.duration.WithLabelValues(ref.Kind, string(record.Outcome)).Observe(record.CompletedTime.Sub(record.StartedTime.Time).Seconds())
	}
	level := 0
	if record.StartedTime == nil {
		level = 1
	}
	ctrl.LoggerFrom(ctx).V(level).Info("Recorded a tick", "tick", workload.FormatTime(record.ScheduledTime.Time), "trigger", record.Trigger,
		"outcome", record.Outcome, "reason", record.Reason, "message", record.Message)
	eventType, reason, note := decision.Event(ref, record)
	r.recorder.Eventf(restart, nil, eventType, reason, "Restart", "%s", note)
}

// reportInvalidRequest records an event if the annotation that requests a restart has a new invalid
// value.
func (r *reporter) reportInvalidRequest(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) {
	_, err := decision.RequestedTime(restart, r.clock.Now())
	value := text.Cut(restart.Annotations[tidekeeperv1.RestartNowAnnotation], comparedRequest)
	r.memories.with(key, func(m *memory) {
		switch {
		case err == nil:
			m.reportedRequest = ""
		case m.reportedRequest != value:
			m.reportedRequest = value
			r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, tidekeeperv1.EventInvalidRequest, "Restart", "%s", err)
		}
	})
}
