// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
)

// RunInjector injects a fault into a run of a workload. It uses the baseline of the workload's
// steps.
type RunInjector struct {
	*Injector
	base *baseline.Baseline
	// hold is the time for which the fault FreezeLong holds back watch events. patience is the time
	// by which a step may exceed its duration in the baseline.
	hold, patience time.Duration
}

var _ faults.RunActor = (*RunInjector)(nil)

// InRun returns the injector for a workload run. `f` and `base` are nil in a baseline run.
func (i *Injector) InRun(f *faults.Fault, base *baseline.Baseline, hold, patience time.Duration) *RunInjector {
	i.Aim(f)
	return &RunInjector{Injector: i, base: base, hold: hold, patience: patience}
}

// Reached reports whether the fault has taken effect, as far as the record of the run shows.
func (i *RunInjector) Reached() bool {
	if i.armed.IsZero() {
		return false
	}
	trace := i.trace()
	trace.Watched, trace.Hold = i.base.Watched, i.hold
	trace.Versions, _ = i.Recorder.All()
	return i.fault.TookEffect(&trace)
}

// action returns the action that completes the fault, which may need the baseline.
func (i *RunInjector) action() action {
	act := i.Injector.action()
	if inRun := i.fault.Entry().ActInRun; inRun != nil {
		act = func(ctx context.Context) error { return inRun(i, ctx) }
	}
	if call := i.fault.Call; call != nil && call.ToApplication() {
		return func(ctx context.Context) error {
			asker, err := i.asker(), act(ctx)
			if more := i.fault.Entry().ActOnApplication; err == nil && more != nil {
				err = more(asker, ctx)
			}
			return errors.Join(err, asker.askedAgain(ctx))
		}
	}
	return act
}

// Inject injects the fault if it belongs to the given step: it waits until the fault's rule has hit
// a request or event, and performs the fault's action. If the fault lasts for several steps, Inject
// ends the fault in its last step. It is called in each step, while users perform the step.
// `injected` is the channel returned by Arm. `done` is closed when the users have finished; it is
// nil if the users do nothing.
func (i *RunInjector) Inject(ctx context.Context, step int, injected, done <-chan struct{}) error {
	f := i.fault
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
		i.Settler.Rest(ctx, step, i.base.Steps[step].Took+i.patience)
		return i.action()(ctx)
	}
	calm := time.Duration(0)
	if s := &i.base.Steps[step]; step > 0 && !s.Waits {
		calm = s.Quiet // Where users wait, an operator may look again only after a pause.
	}
	_, err := i.strike(ctx, injected, done, i.base.Steps[step].Took+2*i.base.Quiet+Stall, calm, i.action())
	return err
}

// ListAgain makes the operator repeat its list of the fault's resource at the end of the step.
func (i *RunInjector) ListAgain(ctx context.Context) error {
	step := i.Settler.Step
	i.Settler.Rest(ctx, step, i.base.Steps[step].Took+2*i.base.Quiet)
	if err := i.Rules.expire(ctx, i.fault.Resource); err != nil {
		return err
	}
	i.Notes.Add("all is listed")
	i.Settler.Act()
	return nil
}

// thaw ends a fault that hides changes from the operator until the end of a step. It first waits
// until the cluster is quiet or a time limit has passed and, for a fault with the effect Holds, for
// the duration of --hold. Then it removes the fault's rule. If the rule has held back events, they
// now reach the operator. If the rule has dropped them (a fault with the effect ListsAfter), thaw
// makes the operator list the resource again.
func (i *RunInjector) thaw(ctx context.Context) error {
	f := i.fault
	i.Settler.Rest(ctx, f.Until, i.base.Steps[f.Until].Took+2*i.base.Quiet)
	if f.Effects().Holds {
		i.Notes.Add("no action for %s (--hold)", i.hold)
		select {
		case <-time.After(i.hold):
		case <-ctx.Done():
			return ctx.Err()
		}
		i.Rival.touch(ctx, i.base.Roots)
		i.Settler.Rest(ctx, f.Until, 2*i.base.Quiet+5*time.Second)
	}
	if f.Effects().ListsAfter {
		if err := i.Rules.expire(ctx, i.fault.Resource); err != nil {
			return err
		}
	}
	i.Rules.Remove(faults.FaultRule)
	i.Notes.Add("the events arrive")
	i.Settler.Act()
	return nil
}
