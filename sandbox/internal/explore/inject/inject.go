// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Parts holds the parts of a run that faults act on.
type Parts struct {
	Rules      Rules
	Rival      *Rival
	Leadership Leadership
	Settler    *settle.Settler
	Recorder   *observe.Recorder
	Log        *observe.Log
	Notes      *observe.Notes
	Operator   *operator.Processes
	// Component performs an action, "kill" or "start", on a control plane component.
	Component func(ctx context.Context, name, action string) error
}

// Injector injects a fault: it adds a proxy rule, and performs the fault's action after the rule
// has fired. It works without a baseline, so that fuzz can use it.
type Injector struct {
	Parts
	fault   *faults.Fault
	reached bool
}

var _ faults.Actor = (*Injector)(nil)

// New returns an injector without a fault. Aim sets the fault.
func New(parts Parts) *Injector { return &Injector{Parts: parts} }

// Aim sets the fault to inject, or nil for none, and resets Reached.
func (i *Injector) Aim(f *faults.Fault) {
	i.fault = f
	i.mark(false)
}

// Reached reports whether the fault took effect.
func (i *Injector) Reached() bool { return i.reached }

// mark records whether the fault took effect.
func (i *Injector) mark(reached bool) { i.reached = reached }

// act performs an action, and records whether the fault took effect.
func (i *Injector) act(ctx context.Context, action action) error {
	reached, err := action(ctx)
	i.mark(reached)
	return err
}

// action completes a fault after its rule has fired, and reports whether the fault took effect.
type action func(context.Context) (reached bool, err error)

// action returns the action that completes the fault. If the action needs a baseline, it returns an
// action that fails.
func (i *Injector) action() action {
	entry := i.fault.Entry()
	return func(ctx context.Context) (bool, error) {
		switch {
		case entry.ActInRun != nil:
			return false, fmt.Errorf("the fault %s needs a workload", entry.Kind)
		case entry.Act != nil:
			return entry.Act(i, ctx)
		}
		return true, nil
	}
}

// Arm adds the fault's proxy rule at the beginning of the fault's step. The returned channel is
// closed when the rule fires for the first time. It is nil for faults that hit an operator start,
// which have no rule.
func (i *Injector) Arm(ctx context.Context) (<-chan struct{}, error) {
	f := i.fault
	entry := f.Entry()
	match, count := fault.Match{}, fault.Count{}
	switch {
	case entry.Hits == faults.Start:
		return nil, nil
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
	if err := i.Rules.add(FaultRule, match, count, entry.Rule); err != nil {
		return nil, err
	}
	if f.Effects().Lasts {
		i.Notes.Add(results.Fault+"%s: %s", f.Resource, f.Entry().Text)
	}
	fired := make(chan struct{})
	go whenFired(ctx, i.Rules.Proxy.Rules(), FaultRule, fired)
	return fired, nil
}

// Strike waits until the fault's rule has fired, and then performs the fault's action. If the rule
// does not fire in time, Strike removes it, and the fault counts as not reached. `done`, `limit`
// and `calm` bound the wait, see reaches.
func (i *Injector) Strike(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) error {
	return i.strike(ctx, injected, done, limit, calm, i.action())
}

func (i *Injector) strike(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration, action action) error {
	if !i.reaches(ctx, injected, done, limit, calm) {
		i.Rules.Remove(FaultRule)
		return ctx.Err()
	}
	i.Notes.Add(results.Fault+"%s: %s", i.fault.Subject(), i.fault.Entry().Text)
	return i.act(ctx, action)
}

// reaches waits until `injected` is closed, and reports whether that has happened in time. `limit`
// is counted from the time at which `done` is closed, or from now if `done` is nil. From then on,
// reaches also returns false if nothing has changed for much longer than `calm`, the step's quiet
// time in the baseline. A `calm` of 0 disables this check, because a pause proves nothing while the
// operator starts.
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
			if calm > 0 && i.Settler.QuietFor() > max(2*calm, 3*baseline.ShortQuiet) {
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
func (i *Injector) Crash(ctx context.Context) (reached bool, err error) {
	i.Operator.Kill()
	i.Notes.Add("the operator is killed")
	i.Rules.Remove(FaultRule)
	if err := i.Leadership.free(ctx); err != nil {
		return false, err
	}
	if err := i.Operator.Start(); err != nil {
		return false, err
	}
	i.Notes.Add("the operator is started again")
	i.Settler.Act()
	return true, nil
}
