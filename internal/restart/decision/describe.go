// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Gate describes a condition that must hold before a restart starts. Such a condition is called a
// gate, which is open while the condition holds.
type Gate struct {
	Name GateName `json:"gate"`
	Open bool     `json:"open"`
	// Reason is the reason for which the gate is closed, in the form of a reason of the condition
	// Ready; "" if the gate is open.
	Reason string `json:"reason,omitempty"`
	// Message explains why the gate is open or closed.
	Message string `json:"message"`
	// Opens is the time at which a closed gate opens without user action; zero if unknown.
	Opens time.Time `json:"opens,omitzero"`
}

// GateName identifies a gate.
type GateName string

// Names of the gates, in the order in which users have to resolve them.
const (
	GateSchedule GateName = "Schedule" // open while the schedule runs; requested restarts ignore it
	GateTarget   GateName = "Target"   // open if the workload exists and a restart would replace its pods
	GateFreeze   GateName = "Freeze"   // open while no freeze is in force
	GateWindow   GateName = "Window"   // open while a window is open for long enough
	GateOrder    GateName = "Order"    // open once the predecessors (spec.after) have finished
	GateHealth   GateName = "Health"   // open while the workload is healthy enough to be restarted
	GateQuery    GateName = "Query"    // open while no Prometheus query of the administrator returns results
	GateProgress GateName = "Progress" // open while no restart is in progress
	GateBudget   GateName = "Budget"   // open while the restart budget has a free slot
)

// Gates returns the current state of all gates except the budget, which depends on other
// ScheduledRestarts. From the input, it uses only the ScheduledRestart, the schedule, the freezes,
// the predecessors, the target and the time. The answer of the Prometheus queries, and whether new
// pods could start, are taken from the status.
func Gates(in Input) []Gate {
	d := &decider{}
	d.prepare(&in)
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

// describeAs describes a gate, a condition for a restart, to users. If b, the reason for which the
// gate is closed, is nil, the gate is open, and "open" is its message.
func describeAs(name GateName, b *blocker, open string) Gate {
	if b == nil {
		return Gate{Name: name, Open: true, Message: open}
	}
	return Gate{Name: name, Reason: b.reason, Message: b.message, Opens: b.until}
}
