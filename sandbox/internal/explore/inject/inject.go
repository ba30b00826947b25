// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/application"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Parts holds the components of a run that faults act on.
type Parts struct {
	Rules      Rules
	Rival      *Rival
	Leadership Leadership
	Settler    *settle.Settler
	Recorder   *observe.Recorder
	Log        *observe.Log
	Notes      *observe.Notes
	Operator   *operator.Processes
	Processes  *observe.ProcessLog
	// Component performs an action, "kill" or "start", on a control plane component.
	Component func(ctx context.Context, name, action string) error
	// Restart kills the program of the named application, and starts it again.
	Restart func(name string) error
}

// Injector injects a fault: it adds a proxy rule, and performs the fault's action after the rule
// has hit a request or event. It needs no baseline, so that fuzz can use it.
type Injector struct {
	Parts
	fault *faults.Fault
	// armed is the time of the call of Arm, or zero before the call. from is the number of requests
	// logged before armed.
	armed time.Time
	from  int
	// disturbed is the fault of an application, if the fault is of that kind.
	disturbed *application.Disturbed
}

var _ faults.Actor = (*Injector)(nil)

// New returns an injector without a fault. Aim sets the fault.
func New(parts Parts) *Injector { return &Injector{Parts: parts} }

// Aim sets the fault to inject, or nil for none.
func (i *Injector) Aim(f *faults.Fault) { i.fault, i.armed, i.disturbed = f, time.Time{}, nil }

// Reached reports whether the fault has taken effect, as far as the record of the run shows.
func (i *Injector) Reached() bool {
	if i.armed.IsZero() {
		return false
	}
	trace := i.trace()
	return i.fault.TookEffect(&trace)
}

// trace returns the record of the run since the fault was armed.
func (i *Injector) trace() faults.Trace {
	t := faults.Trace{Began: i.armed, Now: time.Now(), Requests: i.Log.Since(i.from), Processes: i.Processes.Since(i.armed)}
	// A request that is being delayed is not logged yet, but the rule that delays it has fired.
	fired := i.Rules.fired(faults.FaultRule)
	if i.disturbed != nil {
		select {
		case <-i.disturbed.Fired:
			fired = true
		default:
		}
	}
	t.Pending = fired && !slices.ContainsFunc(t.Requests, func(r observe.Request) bool { return r.Rule == faults.FaultRule })
	return t
}

// action is the second part of a fault, which follows after the proxy's rule has hit a request or
// event.
type action func(context.Context) error

// action returns the action that completes the fault. If the action needs a baseline, it returns an
// action that fails.
func (i *Injector) action() action {
	entry := i.fault.Entry()
	return func(ctx context.Context) error {
		switch {
		case entry.ActInRun != nil:
			return fmt.Errorf("the fault %s needs a workload", entry.Kind)
		case entry.Act != nil:
			return entry.Act(i, ctx)
		}
		return nil
	}
}

// Arm adds the fault's proxy rule at the beginning of the fault's step. The returned channel is
// closed when the rule fires for the first time. It is nil for faults that hit an operator start,
// which have no rule.
func (i *Injector) Arm(ctx context.Context) (<-chan struct{}, error) {
	return i.arm(ctx, i.fault.Entry().Rule)
}

// arm is like Arm, with a rule that injects the given proxy fault.
func (i *Injector) arm(ctx context.Context, rule fault.Fault) (<-chan struct{}, error) {
	f := i.fault
	i.armed, i.from = time.Now(), i.Log.Len()
	entry := f.Entry()
	match, count := fault.Match{}, fault.Count{}
	switch {
	case entry.Hits == faults.Start:
		return nil, nil
	case f.Call != nil && f.Call.ToApplication():
		i.disturbed = i.Rules.Applications.Disturb(application.Disturbance{Rule: faults.FaultRule, Call: *f.Call, Nth: f.Nth, Fault: rule})
		return i.disturbed.Fired, nil
	case entry.Hits == faults.Write && f.Call != nil:
		match = fault.Match{Verbs: []string{f.Call.Verb}, Resources: []string{f.Call.Resource}}
		if f.Call.Name != "" {
			match.Names = []string{f.Call.Name}
		}
		if f.Call.Namespace != "" {
			match.Namespaces = []string{f.Call.Namespace}
		}
		count = fault.Count{From: f.Nth, Times: 1}
	case (entry.Hits == faults.Event || entry.Hits == faults.Events) && f.Resource != "":
		match = fault.Match{Verbs: []string{"watch"}, Resources: []string{f.Resource}}
		if !f.Effects().Lasts {
			count = fault.Count{From: max(f.Nth, 1), Times: 1}
		}
	default:
		return nil, fmt.Errorf("the fault %q needs a call or a resource", f.Kind)
	}
	if err := i.Rules.add(faults.FaultRule, match, count, rule); err != nil {
		return nil, err
	}
	if f.Effects().Lasts {
		i.Notes.Add(results.Fault+"%s: %s", f.Resource, f.Entry().Text)
	}
	fired := make(chan struct{})
	go whenFired(ctx, i.Rules.Proxy.Rules(), faults.FaultRule, fired)
	return fired, nil
}

// Stall is the time without changes for which a busy machine may stall an operator. An operator that
// has done nothing for a shorter time may still send the request that the fault hits.
const Stall = 12 * time.Second

// Strike waits until the fault's rule has hit a request or event, performs the fault's action, and
// returns true. If the rule hits nothing in time, Strike removes it and returns false. `done`,
// `limit` and `calm` limit the wait (see reaches).
func (i *Injector) Strike(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) (fired bool, err error) {
	return i.strike(ctx, injected, done, limit, calm, i.action())
}

func (i *Injector) strike(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration, action action) (fired bool, err error) {
	if !i.reaches(ctx, injected, done, limit, calm) {
		i.Rules.Remove(faults.FaultRule)
		return false, ctx.Err()
	}
	i.Notes.Add(results.Fault+"%s: %s", i.fault.Subject(), i.fault.Entry().Text)
	return true, action(ctx)
}

// reaches waits until `injected` is closed, and reports whether that has happened in time. It first
// waits for `done`, unless nil; the time limit `limit` starts when `done` is closed. After that,
// reaches also returns false if nothing changes for much longer than `calm`, the step's quiet time
// in the baseline. A `calm` of 0 disables this check, for use during the operator's start and in steps in
// which users wait, which may contain long pauses.
func (i *Injector) reaches(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) bool {
	if done != nil {
		select {
		case <-injected:
			return true
		case <-done:
		case <-ctx.Done():
			return false
		}
	}
	over := time.After(limit)
	for {
		select {
		case <-injected:
			return true
		case <-time.After(observe.Look):
			if calm > 0 && i.Settler.QuietFor() > max(2*calm, Stall) {
				return false
			}
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Crash kills the operator and restarts it immediately. It clears the killed leader's lease, as if
// the lease had expired.
func (i *Injector) Crash(ctx context.Context) error {
	i.Operator.Kill()
	i.Notes.Add("the operator is killed")
	i.Rules.Remove(faults.FaultRule)
	if err := i.Leadership.free(ctx); err != nil {
		return err
	}
	if err := i.Operator.Start(); err != nil {
		return err
	}
	i.Notes.Add("the operator is started again")
	i.Settler.Act()
	return nil
}
