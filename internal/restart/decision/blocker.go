// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// blocker is what keeps a restart from being started now.
type blocker struct {
	reason  string
	message string
	// permanent says that waiting does not help: the tick is skipped.
	permanent bool
	// until is when the blocker goes by itself; zero means that this is not known.
	until time.Time
	// again is when to find out again whether it has gone; zero means that an event says so.
	again time.Time
}

// blocker returns the first thing that keeps the target from being restarted at a time, or
// nil. The order is that in which a person has to solve them: that a workload is not
// healthy does not matter while its pods cannot be replaced anyway.
func (d *decider) blocker(at time.Time) *blocker {
	if b := unusable(d.spec, &d.in); b != nil {
		return b
	}
	if b := d.frozen(at); b != nil {
		return b
	}
	if b := d.closed(at); b != nil {
		return b
	}
	if b := d.outOfOrder(at); b != nil {
		return b
	}
	if b := unready(d.spec, d.in.Target); b != nil {
		return b
	}
	return d.closedByQuery()
}

// budgetExhausted is what a restart waits for that has no slot.
func budgetExhausted() *blocker {
	return &blocker{reason: tidekeeperv1.ReasonBudgetExhausted, message: "the restart budget is used up"}
}

// unusable returns what is wrong with a target whenever it is restarted, or nil.
func unusable(spec *tidekeeperv1.ScheduledRestartSpec, in *Input) *blocker {
	t := in.Target
	switch {
	case t == nil:
		return &blocker{reason: tidekeeperv1.ReasonTargetNotFound, message: notFound(spec.TargetRef, in)}
	case t.Deleting:
		return &blocker{reason: tidekeeperv1.ReasonTargetNotFound, message: fmt.Sprintf("%s is being deleted", t)}
	case evicts(spec):
		// Pods are replaced whatever the update strategy.
		return nil
	case t.OnDelete:
		return &blocker{reason: tidekeeperv1.ReasonStrategyOnDelete, message: onDeleteMessage(t), permanent: true}
	case t.Partitioned:
		return &blocker{reason: tidekeeperv1.ReasonStrategyPartition, message: partitionMessage(t), permanent: true}
	default:
		return nil
	}
}

// unready returns what keeps the target from being restarted now, or nil.
func unready(spec *tidekeeperv1.ScheduledRestartSpec, t *workload.State) *blocker {
	t = asEvicted(spec, t)
	switch {
	case t.Paused:
		return &blocker{reason: tidekeeperv1.ReasonTargetPaused, message: fmt.Sprintf("%s is paused", t)}
	case t.Rollout.Updating && !t.Rollout.Exceeded:
		return &blocker{reason: tidekeeperv1.ReasonTargetRolling, message: fmt.Sprintf("%s is already being rolled out%s", t, why(t))}
	case spec.Precondition != tidekeeperv1.PreconditionNone && (!t.Rollout.Complete() || t.Rollout.Exceeded || t.Rollout.Halted != ""):
		return &blocker{reason: tidekeeperv1.ReasonTargetUnhealthy, message: fmt.Sprintf("%s is not healthy%s", t, why(t))}
	case spec.Precondition != tidekeeperv1.PreconditionNone && t.Stalled && !evicts(spec):
		return &blocker{reason: tidekeeperv1.ReasonTargetUnhealthy, message: fmt.Sprintf(
			"%s has pods on %d nodes that are not Ready; its maxUnavailable or maxSurge allows no more, so that no other pod would be replaced", t, t.Excluded)}
	default:
		return nil
	}
}

// why returns the end of a message: why the rollout of the target does not go on, if that is known.
// What else it waits for changes from pod to pod, and each change of a message is a write.
func why(t *workload.State) string {
	if t.Rollout.Halted == "" {
		return ""
	}
	return ": " + t.Rollout.Halted
}

// notFound returns the message for a target that does not exist.
func notFound(ref tidekeeperv1.TargetRef, in *Input) string {
	if in.Unreadable != "" {
		return in.Unreadable
	}
	if in.Unserved {
		return fmt.Sprintf("there is no %s %s: the cluster does not serve the kind %s of %s; is its CRD installed?", ref.Kind, ref.Name, ref.Kind, ref.GetAPIVersion())
	}
	return fmt.Sprintf("there is no %s %s in this namespace", ref.Kind, ref.Name)
}

func onDeleteMessage(t *workload.State) string {
	return fmt.Sprintf("%s has the update strategy OnDelete, by which no pod would be replaced", t)
}

func partitionMessage(t *workload.State) string {
	return fmt.Sprintf("%s has no pod above its partition, so that no pod would be replaced", t)
}
