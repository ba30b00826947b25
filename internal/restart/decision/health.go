// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// healthGate keeps a restart from starting while the workload does not meet the precondition of the
// spec. The pods of the workload must be available. If onConfigChange is set, the ConfigMaps and
// Secrets that new pods need must exist.
type healthGate struct {
	// target is nil if the workload does not exist. targetGate then reports the reason.
	target       *workload.State
	evicts       bool
	precondition tidekeeperv1.Precondition
	// missing names a ConfigMap, Secret or key that new pods need and that does not exist; "" if
	// all of them exist.
	missing string
	// ready is the condition Ready of the ScheduledRestart. It is nil unless spec.onConfigChange is
	// set and this process cannot read ConfigMaps and Secrets.
	ready *metav1.Condition
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
	case needed && g.missing != "":
		return &blocker{reason: tidekeeperv1.ReasonTargetUnhealthy, message: g.missing + ", and new pods of " + t.String() + " need it to start"}
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
	case g.ready != nil && g.ready.Reason == tidekeeperv1.ReasonTargetUnhealthy && g.blocks(at, due) == nil:
		return Gate{Name: GateHealth, Reason: g.ready.Reason, Message: g.ready.Message}
	default:
		return describeAs(GateHealth, g.blocks(at, due), "all its pods are available")
	}
}

// asEvicted returns the state of the workload that applies to the next restart. For a restart by
// eviction, pods with an earlier template do not count as a rollout in progress if the workload
// keeps them until they are deleted.
func (g *healthGate) asEvicted() *workload.State {
	if !g.evicts || !g.target.OnDelete {
		return g.target
	}
	state := *g.target
	state.Rollout = g.target.Availability
	return &state
}

// why returns a clause for the end of a message: the reason for which the target's rollout is
// stuck, if known. It omits other reasons to wait, because they differ from pod to pod, and each
// change of the message would cause a status write.
func why(t *workload.State) string {
	if t.Rollout.Halted == "" {
		return ""
	}
	return ": " + t.Rollout.Halted
}
