// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Gate is one of the things that must allow a restart before it is started.
type Gate struct {
	Name GateName `json:"gate"`
	Open bool     `json:"open"`
	// Reason is why it is closed, as in the condition Ready; empty if it is open.
	Reason string `json:"reason,omitempty"`
	// Message says how the gate stands.
	Message string `json:"message"`
	// Opens is when a closed gate opens by itself, if that is known.
	Opens time.Time `json:"opens,omitzero"`
}

// GateName names a gate.
type GateName string

// The gates, in the order in which a person has to open them.
const (
	GateSchedule GateName = "Schedule" // the schedule runs; a request does not need it
	GateTarget   GateName = "Target"   // the workload exists, and a restart replaces its pods
	GateFreeze   GateName = "Freeze"   // no freeze is in force
	GateWindow   GateName = "Window"   // a window is open that is long enough
	GateOrder    GateName = "Order"    // those that come first have finished
	GateHealth   GateName = "Health"   // the workload is in a state to be restarted
	GateQuery    GateName = "Query"    // no query of the manager's operator has a result
	GateProgress GateName = "Progress" // no restart is in progress: it ends first
	GateBudget   GateName = "Budget"   // a slot is free
)

// Gates returns how the gates stand now, all but that of the budget, which depends on other
// objects. Of the input only the ScheduledRestart, the schedule, the freezes, the order, the
// target and the time are read: what the queries say is taken from its status.
func Gates(in Input) []Gate {
	d := &decider{in: in, spec: &in.Restart.Spec}
	d.out.Status = in.Restart.Status
	closed := func(name GateName, b *blocker, open string) Gate {
		if b == nil {
			return Gate{Name: name, Open: true, Message: open}
		}
		return Gate{Name: name, Reason: b.reason, Message: b.message, Opens: b.until}
	}
	gates := []Gate{d.scheduleGate()}
	unusable := unusable(d.spec, &in)
	gates = append(gates, closed(GateTarget, unusable, fmt.Sprintf("%s %s exists", d.spec.TargetRef.Kind, d.spec.TargetRef.Name)))
	gates = append(gates, closed(GateFreeze, d.frozen(in.Now), "no Freeze is in force"))
	gates = append(gates, closed(GateWindow, d.closed(in.Now), d.openMessage()))
	gates = append(gates, closed(GateOrder, d.outOfOrder(in.Now), d.orderlyMessage()))
	health := Gate{Name: GateHealth, Reason: tidekeeperv1.ReasonTargetNotFound, Message: "there is no workload to look at"}
	if in.Target != nil {
		health = closed(GateHealth, unready(d.spec, in.Target), d.healthMessage())
	}
	return append(gates, health, d.queryGate(), d.progressGate())
}

func (d *decider) scheduleGate() Gate {
	g := Gate{Name: GateSchedule, Reason: d.stopped()}
	switch g.Reason {
	case "":
		g.Open, g.Message = true, "it has no upcoming tick"
		triggers := d.triggersMessage()
		switch next := d.out.Status.NextScheduleTime; {
		case next != nil:
			g.Message = "the next tick is " + formatTime(next.Time)
		case d.in.Ticks == nil && triggers != "":
			g.Message = "there is no schedule"
		}
		if triggers != "" {
			g.Message += "; " + triggers
		}
	case tidekeeperv1.ReasonInvalidSchedule:
		g.Message = d.in.Invalid.Error()
	case tidekeeperv1.ReasonOrphaned:
		g.Message = d.orphanedMessage()
	case tidekeeperv1.ReasonFailureLimit:
		g.Message = fmt.Sprintf("%d restarts in a row have failed", d.out.Status.ConsecutiveFailures)
	default:
		g.Message = "it is suspended"
	}
	return g
}

// progressGate is closed while a restart is in progress: a request waits for its end.
func (d *decider) progressGate() Gate {
	active := d.in.Restart.Status.Active
	if active == nil {
		return Gate{Name: GateProgress, Open: true, Message: "no restart is in progress"}
	}
	g := Gate{Name: GateProgress, Reason: tidekeeperv1.ReasonRestarting, Message: fmt.Sprintf("a restart for the tick of %s is in progress", formatTime(active.ScheduledTime.Time))}
	if active.Eviction != nil && active.Eviction.Refused != "" {
		g.Message += "; " + active.Eviction.Refused
	}
	return g
}

func (d *decider) openMessage() string {
	if len(d.in.Windows) == 0 {
		return "there are no windows: at any time"
	}
	closes, _ := d.in.Windows.ClosesAt(d.in.Now)
	return "a window is open until " + formatTime(closes)
}

func (d *decider) orderlyMessage() string {
	if len(d.spec.After) == 0 {
		return "it comes after no other"
	}
	return "those that it comes after have finished"
}

func (d *decider) healthMessage() string {
	if d.spec.Precondition == tidekeeperv1.PreconditionNone {
		return "it need not be healthy, as the precondition is None"
	}
	return "all its pods are available"
}
