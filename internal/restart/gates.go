// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// gate is why a restart cannot be started now.
type gate struct {
	reason  string
	message string
	// forGood: waiting will not open it; the tick is skipped.
	forGood bool
}

// closedGate returns the first gate in the way of restarting the target, nil if
// there is none. The order is that of what a person has to mend first: there is
// no use in saying that something is unhealthy which cannot be rolled anyway.
func closedGate(spec *tidekeeperv1.ScheduledRestartSpec, t *target) *gate {
	switch {
	case t == nil:
		return &gate{reason: ReasonTargetNotFound, message: fmt.Sprintf("there is no %s %s", spec.TargetRef.Kind, spec.TargetRef.Name)}
	case t.deleting:
		return &gate{reason: ReasonTargetNotFound, message: fmt.Sprintf("%s is being deleted", t)}
	case t.onDelete:
		return &gate{reason: ReasonStrategyOnDelete, message: fmt.Sprintf("%s has the update strategy OnDelete, which rolls nothing", t), forGood: true}
	case t.paused:
		return &gate{reason: ReasonTargetPaused, message: fmt.Sprintf("%s is paused", t)}
	case t.rollout.updating && !t.rollout.exceeded:
		return &gate{reason: ReasonTargetRolling, message: fmt.Sprintf("%s is being rolled out already", t)}
	case spec.Precondition != tidekeeperv1.PreconditionNone && (!t.rollout.complete() || t.rollout.exceeded):
		return &gate{reason: ReasonTargetUnhealthy, message: fmt.Sprintf("%s is not healthy", t)}
	default:
		return nil
	}
}
