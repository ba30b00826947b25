// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Gate describes a condition that must hold before a restart starts.
type Gate struct {
	Name GateName `json:"gate"`
	Open bool     `json:"open"`
	// Reason is the reason for which the gate is closed, as in the condition Ready; empty if it is open.
	Reason string `json:"reason,omitempty"`
	// Message explains why the gate is open or closed.
	Message string `json:"message"`
	// Opens is the time at which a closed gate opens by itself, if known.
	Opens time.Time `json:"opens,omitzero"`
}

// GateName is the name of a gate.
type GateName string

// The gates, in the order in which users have to open them.
const (
	GateSchedule GateName = "Schedule" // the schedule runs; requests do not need it
	GateTarget   GateName = "Target"   // the workload exists, and a restart replaces its pods
	GateFreeze   GateName = "Freeze"   // no freeze is in force
	GateWindow   GateName = "Window"   // a window is open, and long enough
	GateOrder    GateName = "Order"    // the ScheduledRestarts that come first have finished
	GateHealth   GateName = "Health"   // the workload is in a state to be restarted
	GateQuery    GateName = "Query"    // no query of the manager's operator has a result
	GateProgress GateName = "Progress" // no restart is in progress
	GateBudget   GateName = "Budget"   // a slot is free
)

// Gates returns the current state of all gates except the budget, which depends on other objects. It reads
// only the ScheduledRestart, the schedule, the freezes, the order, the target and the time from the input,
// and takes the answer of the queries, and whether new pods would start, from the status.
func Gates(in Input) []Gate {
	d := &decider{}
	d.prepare(in)
	all := append(gates{&scheduleGate{state: &d.state, scheduled: in.Ticks != nil, triggers: d.triggers.message}}, d.gates.inOrder()...)
	ready := meta.FindStatusCondition(in.Restart.Status.Conditions, tidekeeperv1.ConditionReady)
	if d.gates.query.ready = ready; in.Restart.Spec.OnConfigChange != "" && in.Config == nil {
		d.gates.health.ready = ready
	}
	described := make([]Gate, 0, len(all)+1)
	due := d.triggers.lastDue(in.Now)
	for _, gate := range append(all, &progressGate{in.Restart.Status.Active}) {
		described = append(described, gate.describe(in.Now, due))
	}
	return described
}

// describeAs describes a gate by its blocker, or by the message for an open gate.
func describeAs(name GateName, b *blocker, open string) Gate {
	if b == nil {
		return Gate{Name: name, Open: true, Message: open}
	}
	return Gate{Name: name, Reason: b.reason, Message: b.message, Opens: b.until}
}
