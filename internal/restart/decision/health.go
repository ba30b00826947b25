// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// healthGate is closed while the workload is not in a state to be restarted.
type healthGate struct {
	// target is nil if there is no workload: that is the business of another gate.
	target       *workload.State
	evicts       bool
	precondition tidekeeperv1.Precondition
}

func (g *healthGate) blocks(_, _ time.Time) *blocker {
	if g.target == nil {
		return nil
	}
	t, needed := g.asEvicted(), g.precondition != tidekeeperv1.PreconditionNone
	switch {
	case t.Paused:
		return &blocker{reason: tidekeeperv1.ReasonTargetPaused, message: fmt.Sprintf("%s is paused", t)}
	case t.Rollout.Updating && !t.Rollout.Exceeded:
		return &blocker{reason: tidekeeperv1.ReasonTargetRolling, message: fmt.Sprintf("%s is already being rolled out%s", t, why(t))}
	case needed && (!t.Rollout.Complete() || t.Rollout.Exceeded || t.Rollout.Halted != ""):
		return &blocker{reason: tidekeeperv1.ReasonTargetUnhealthy, message: fmt.Sprintf("%s is not healthy%s", t, why(t))}
	case needed && t.Stalled && !g.evicts:
		return &blocker{reason: tidekeeperv1.ReasonTargetUnhealthy, message: fmt.Sprintf(
			"%s has pods on %d nodes that are not Ready; its maxUnavailable or maxSurge allows no more, so that no other pod would be replaced", t, t.Excluded)}
	default:
		return nil
	}
}

func (g *healthGate) describe(at, due time.Time) Gate {
	switch {
	case g.target == nil:
		return Gate{Name: GateHealth, Reason: tidekeeperv1.ReasonTargetNotFound, Message: "there is no workload to look at"}
	case g.precondition == tidekeeperv1.PreconditionNone:
		return describeAs(GateHealth, g.blocks(at, due), "it need not be healthy, as the precondition is None")
	default:
		return describeAs(GateHealth, g.blocks(at, due), "all its pods are available")
	}
}

// asEvicted returns the state of the workload as it matters to the next restart. Pods of an earlier
// template are not a rollout in progress if the workload leaves them as they are until they are gone.
func (g *healthGate) asEvicted() *workload.State {
	if !g.evicts || !g.target.OnDelete {
		return g.target
	}
	state := *g.target
	state.Rollout = g.target.Availability
	return &state
}

// why returns the end of a message: why the rollout of the target does not go on, if that is known.
// Its other waits change from pod to pod, and each change of a message is a write.
func why(t *workload.State) string {
	if t.Rollout.Halted == "" {
		return ""
	}
	return ": " + t.Rollout.Halted
}
