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

// Injector injects the fault of a run: it adds the proxy rule, and acts when the rule has
// fired.
type Injector struct {
	Fault *faults.Fault
	Base  *baseline.Baseline
	// Hold is the time for which FreezeLong holds back events, and Patience the time that a step
	// may take beyond its time in the baseline.
	Hold, Patience time.Duration

	Rules      Rules
	Rival      *Rival
	Leadership Leadership
	Settler    *settle.Settler
	Recorder   *observe.Recorder
	Log        *observe.Log
	Notes      *observe.Notes
	Operator   *operator.Processes
	// Component performs an action, "kill" or "start", on a component of the control plane.
	Component func(ctx context.Context, name, action string) error
	// Reached is set if the fault was injected.
	Reached bool
}

var _ faults.Actor = (*Injector)(nil)

// Arm adds the proxy rule of the fault at the beginning of its step. The channel is closed when
// the rule fires for the first time; it is nil for faults without a rule, which come after the
// step.
func (i *Injector) Arm(ctx context.Context) (<-chan struct{}, error) {
	f := i.Fault
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

// Inject performs the actions of the fault that follow its rule. It is called in each step,
// while users perform the step; done is closed when they have.
func (i *Injector) Inject(ctx context.Context, step int, injected, done <-chan struct{}) error {
	f := i.Fault
	switch {
	case f == nil:
		return nil
	case f.Effects().Lasts:
		if step == f.Until {
			return i.thaw(ctx)
		}
		return nil
	case f.Step != step:
		return nil
	case f.Entry().Hits == faults.Start:
		i.Settler.Rest(ctx, step, i.Base.Steps[step].Took+i.Patience)
		return f.Entry().Act(i, ctx)
	}
	calm := time.Duration(0)
	if step > 0 {
		calm = i.Base.Steps[step].Quiet
	}
	return i.Strike(ctx, injected, done, i.Base.Steps[step].Took+2*i.Base.Quiet+3*time.Second, calm)
}

// Strike waits until the rule has fired, and then performs the action of the fault. If the rule
// does not fire in time, Strike removes the rule, and the fault counts as not reached. limit
// and calm bound the wait, as in reaches.
func (i *Injector) Strike(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) error {
	f := i.Fault
	if !i.reaches(ctx, injected, done, limit, calm) {
		i.Rules.Remove(FaultRule)
		return ctx.Err()
	}
	i.Reached = true
	i.Notes.Add(results.Fault+"%s: %s", f.Subject(), f.Entry().Text)
	if act := f.Entry().Act; act != nil {
		return act(i, ctx)
	}
	return nil
}

// ListAgain makes the operator list the resource again at the end of the step.
func (i *Injector) ListAgain(ctx context.Context) error {
	step := i.Settler.Step
	i.Settler.Rest(ctx, step, i.Base.Steps[step].Took+2*i.Base.Quiet)
	if err := i.Rules.expire(ctx, i.Fault.Resource); err != nil {
		return err
	}
	i.Notes.Add("all is listed")
	i.Settler.Act()
	return nil
}

// reaches waits for injected to be closed, and reports whether it was. It gives up limit after
// done is closed, or earlier if nothing has changed for much longer than calm, the quiet time
// of the step in the baseline. A calm of 0 disables that, as while the operator starts, when a
// pause says nothing.
func (i *Injector) reaches(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) bool {
	select {
	case <-injected:
		return true
	case <-done:
	case <-ctx.Done():
		return false
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

// Crash kills the operator and restarts it at once, as if the lease of the dead leader had
// expired.
func (i *Injector) Crash(ctx context.Context) error {
	i.Operator.Kill()
	i.Notes.Add("the operator is killed")
	i.Rules.Remove(FaultRule)
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

// thaw lets the events through that a lasting fault has held back, after the cluster has become
// quiet without these events.
func (i *Injector) thaw(ctx context.Context) error {
	f := i.Fault
	i.Settler.Rest(ctx, f.Until, i.Base.Steps[f.Until].Took+2*i.Base.Quiet)
	if f.Effects().Holds {
		i.Notes.Add("no action for %s (--hold)", i.Hold)
		select {
		case <-time.After(i.Hold):
		case <-ctx.Done():
			return ctx.Err()
		}
		i.Rival.touch(ctx, i.Base.Roots)
		i.Settler.Rest(ctx, f.Until, 2*i.Base.Quiet+5*time.Second)
	}
	i.Reached = i.Rules.fired(FaultRule)
	if f.Effects().ListsAfter {
		if err := i.Rules.expire(ctx, i.Fault.Resource); err != nil {
			return err
		}
	}
	i.Rules.Remove(FaultRule)
	i.Notes.Add("the events arrive")
	i.Settler.Act()
	return nil
}
