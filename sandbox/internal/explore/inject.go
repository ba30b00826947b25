// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// injector injects the fault of a run: it arms the rule, and acts when the rule has fired.
type injector struct {
	fault *Fault
	base  *Baseline
	// hold is how long events are held back by a fault that does so, patience how much longer than
	// undisturbed a step may take.
	hold, patience time.Duration

	rules      rules
	rival      *rival
	leadership leadership
	settler    *settler
	recorder   *recorder
	log        *requestLog
	notes      *notes
	operator   *processes
	sandbox    *sandbox
	// reached: the fault was injected.
	reached bool
}

var _ faults.Actor = (*injector)(nil)

// arm adds the rule of the fault, at the beginning of its step. The channel is closed when
// it was injected for the first time; it is nil for faults that come after the step.
func (i *injector) arm(ctx context.Context) (<-chan struct{}, error) {
	f := i.fault
	entry := f.entry()
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
		if !f.effects().Lasts {
			count = fault.Count{From: max(f.Nth, 1), Times: 1}
		}
	default:
		return nil, fmt.Errorf("the fault %q needs a call or a resource", f.Kind)
	}
	if err := i.rules.add(faultRule, match, count, entry.Rule); err != nil {
		return nil, err
	}
	if f.effects().Lasts {
		i.notes.add(results.Fault+"%s: %s", f.Resource, f.entry().Text)
	}
	fired := make(chan struct{})
	go whenFired(ctx, i.rules.proxy.Rules(), faultRule, fired)
	return fired, nil
}

// inject does what belongs to the fault beside its rule, while users do what the step does, and
// after that is done.
func (i *injector) inject(ctx context.Context, step int, injected, done <-chan struct{}) error {
	f := i.fault
	switch {
	case f == nil:
		return nil
	case f.effects().Lasts:
		if step == f.Until {
			return i.thaw(ctx)
		}
		return nil
	case f.Step != step:
		return nil
	case f.entry().Hits == faults.Start:
		i.settler.rest(ctx, step, i.base.Steps[step].Took+i.patience)
		return f.entry().Act(i, ctx)
	}
	calm := time.Duration(0)
	if step > 0 {
		calm = i.base.Steps[step].Quiet
	}
	return i.strike(ctx, injected, done, i.base.Steps[step].Took+2*i.base.Quiet+3*time.Second, calm)
}

// strike waits until the fault was injected, as reaches does, and does what belongs to it.
func (i *injector) strike(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) error {
	f := i.fault
	if !i.reaches(ctx, injected, done, limit, calm) {
		i.rules.remove(faultRule)
		return ctx.Err()
	}
	i.reached = true
	i.notes.add(results.Fault+"%s: %s", f.subject(), f.entry().Text)
	if act := f.entry().Act; act != nil {
		return act(i, ctx)
	}
	return nil
}

// ListAgain has the operator list the resource again when the step has come to rest.
func (i *injector) ListAgain(ctx context.Context) error {
	step := i.settler.step
	i.settler.rest(ctx, step, i.base.Steps[step].Took+2*i.base.Quiet)
	if err := i.rules.expire(ctx, i.fault.Resource); err != nil {
		return err
	}
	i.notes.add("all is listed")
	i.settler.act()
	return nil
}

// reaches waits until the fault was injected, and reports whether that came: within the
// limit after what users do is done, and not after nothing has happened for long. All is calm when
// nothing happens for that time undisturbed; 0 is while the operator starts, when that says nothing.
func (i *injector) reaches(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) bool {
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
		case <-time.After(look):
			if calm > 0 && i.settler.quietFor() > max(2*calm, 3*shortQuiet) {
				return false
			}
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Crash kills the operator and starts it again at once, as if the lease of a dead leader
// had expired.
func (i *injector) Crash(ctx context.Context) error {
	i.operator.kill()
	i.notes.add("the operator is killed")
	i.rules.remove(faultRule)
	if err := i.leadership.free(ctx); err != nil {
		return err
	}
	if err := i.operator.start(); err != nil {
		return err
	}
	i.notes.add("the operator is started again")
	i.settler.act()
	return nil
}

// thaw ends that events are held back, after the step has come to rest without them.
func (i *injector) thaw(ctx context.Context) error {
	f := i.fault
	i.settler.rest(ctx, f.Until, i.base.Steps[f.Until].Took+2*i.base.Quiet)
	if f.effects().Holds {
		i.notes.add("nothing is done for %s", i.hold)
		select {
		case <-time.After(i.hold):
		case <-ctx.Done():
			return ctx.Err()
		}
		i.rival.touch(ctx, i.base.Roots)
		i.settler.rest(ctx, f.Until, 2*i.base.Quiet+5*time.Second)
	}
	i.reached = i.rules.fired(faultRule)
	if f.effects().ListsAfter {
		if err := i.rules.expire(ctx, i.fault.Resource); err != nil {
			return err
		}
	}
	i.rules.remove(faultRule)
	i.notes.add("the events arrive")
	i.settler.act()
	return nil
}
