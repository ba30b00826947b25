// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/inject"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// run is an execution of the workload in its own sandbox.
type run struct {
	*Explorer
	setting
	fault    *faults.Fault
	baseline *baseline.Baseline

	testbed  *testbed.Testbed
	user     *user
	settler  *settle.Settler
	injector *inject.RunInjector
	judge    *judge.Judge
	outcome  *judge.Outcome
	// stuck is set if a step's command waits for a change that the fault hides until a later step.
	// The fault then counts as if it had not taken effect.
	stuck bool
}

// open prepares a run in a new testbed, but does not start the operator. The caller must end the
// testbed.
func (e *Explorer) open(ctx context.Context, name string, f *faults.Fault, b *baseline.Baseline, in setting) (*run, error) {
	habits := &observe.Habits{Unjudged: e.Workload.Unjudged, Learns: b == nil}
	if b != nil {
		habits.Know(b.Habits)
	}
	t, err := e.Testbeds.Open(ctx, testbed.Options{Name: name, New: in.new, Habits: habits, Log: &observe.Log{Habits: habits}})
	if err != nil {
		return nil, err
	}
	r := &run{Explorer: e, setting: in, fault: f, baseline: b, outcome: &judge.Outcome{}, testbed: t}
	r.user = &user{sandbox: t.Sandbox, recorder: t.Recorder, limit: e.Limits.Settle}
	if f != nil {
		r.user.limit += e.Limits.Patience
	}
	r.settler = &settle.Settler{Recorder: t.Recorder, Log: t.Log, Habits: habits, Proxy: t.Proxy, Base: b, Fault: f, Most: cmp.Or(in.quiet, e.Limits.Quiet)}
	r.injector = t.Injector(r.settler).InRun(f, b, e.Hold, e.Limits.Patience)
	r.judge = &judge.Judge{Workload: e.Workload, Base: b, Fault: f, Recorder: t.Recorder, Rival: r.injector.Rival}
	return r, nil
}

// setting configures a run's sandbox and its synchronization with another run.
type setting struct {
	// new is set if the run needs an unused sandbox, to rule out leftovers of earlier runs.
	new bool
	// The channels over and after, unless nil, keep a second run a step behind a first run. The
	// first run sends an item to the channel over after each step. The second run has the same
	// channel as after, and receives an item from it before each step.
	over  chan<- struct{}
	after <-chan struct{}
	// restart is set if the run ends with a restart of the operator, to learn which watches the
	// operator opens at any start.
	restart bool
	// quiet is the quiet time of a baseline run: the time without changes after which a step ends.
	// 0 means Limits.Quiet.
	quiet time.Duration
}

// play opens a run and executes the workload with the fault `f`, or without a fault if `f` is nil.
func (e *Explorer) play(ctx context.Context, name string, f *faults.Fault, b *baseline.Baseline, in setting) (*judge.Outcome, error) {
	r, err := e.open(ctx, name, f, b, in)
	if err != nil {
		return nil, err
	}
	defer r.testbed.End()
	// Canceling the context stops the run's goroutines.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return r.play(ctx)
}

// play executes the workload and judges the recorded run.
func (r *run) play(ctx context.Context) (*judge.Outcome, error) {
	f, b, t := r.fault, r.baseline, r.testbed
	var managers map[string]bool
	if b != nil {
		managers = b.Managers
		for key := range b.Locks {
			t.Log.AddLock(key)
		}
	}
	r.outcome.Began = time.Now()
	err := r.playSteps(ctx)
	r.outcome.Requests = t.Log.Since(0)
	var incomplete error
	if r.outcome.Versions, incomplete = t.Recorder.All(); err == nil {
		err = incomplete
	}
	r.outcome.Versions = observe.WithoutLeftovers(r.outcome.Versions)
	if f == nil {
		// A program that has ended may be why the operator did not do what the workload waits for.
		err = errors.Join(t.Programs.Ended(), err)
	}
	if text := lab.MayNot(r.outcome.Requests); err != nil && f == nil && text != "" {
		err = fmt.Errorf("%w\n    it may not: %s", err, text)
	}
	if err == nil {
		err = judge.Strangers(r.injector.Rules.List(), &r.outcome.Record, managers)
	}
	if crash := t.Sandbox.Crash(); crash != nil {
		// A crash of the sandbox is not caused by the operator, and explains any other error.
		err = crash
	}
	r.outcome.Took = time.Since(r.outcome.Began)
	r.outcome.Output = t.Operator.Output.Tail(200)
	r.outcome.Watches, r.outcome.Kinds, r.outcome.Never = r.settler.Watches(), t.Recorder.Kinds(), t.Recorder.Never
	r.outcome.Notes, r.outcome.Reached, r.outcome.StepBegan = t.Notes.All, r.injector.Reached() && !r.stuck, r.settler.Began
	r.judge.After(r.outcome, t.Operator.Output.Failures(), t.Operator.AllLastWords())
	if r.restart && err == nil {
		r.outcome.Restarted, err = r.restarted(ctx)
	}
	return r.outcome, err
}

// playSteps performs the workload's steps in order, and stops after the first step with a problem.
func (r *run) playSteps(ctx context.Context) error {
	for _, v := range r.Workload.Invariants {
		if _, err := r.testbed.Recorder.Resource(v.Resource); err != nil {
			return fmt.Errorf("the invariant %q: %w", v.Name, err)
		}
	}
	for step := range len(r.Workload.Steps) + 1 {
		if r.after != nil {
			select {
			case <-r.after:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		lost := r.injector.Rival.Lost()
		if err := r.playStep(ctx, step); errors.Is(err, errStuck) {
			r.stuck = true
			return nil
		} else if err != nil {
			return err
		}
		if step > 0 && r.fault != nil && step > r.fault.Step && r.Workload.Steps[step-1].MayRemoveAnnotations() {
			r.injector.Rival.Forgive(lost)
		}
		if r.over != nil {
			r.over <- struct{}{}
		}
		if len(r.outcome.Problems) > 0 {
			return nil
		}
	}
	r.outcome.Problems = append(r.outcome.Problems, judge.LostWrites(r.settler.Step, r.injector.Rival.Lost())...)
	return nil
}

func (r *run) playStep(ctx context.Context, step int) error {
	at := observe.StepOutcome{From: r.testbed.Log.Len(), Waits: step > 0 && r.Workload.Steps[step-1].Wait != nil}
	at.Began, at.Revision = r.settler.Begin()
	mine := r.fault != nil && r.fault.Step == step
	var injected <-chan struct{}
	if mine {
		var err error
		if injected, err = r.injector.Arm(ctx); err != nil {
			return err
		}
	}
	if step == 0 {
		r.testbed.Notes.Add("the operator is started")
		if err := r.testbed.Operator.Start(); err != nil {
			return err
		}
	} else {
		s := &r.Workload.Steps[step-1]
		r.testbed.Notes.Add("step %d: %s", step, words.OneLine(s.Name))
		doing := r.user.begin(ctx, s)
		if err := r.untilStuck(ctx, step, s, doing); err != nil {
			return err
		}
		// Inject runs concurrently with the step, because the step's command may wait for a change
		// that arrives only after the fault has ended.
		if err := r.injector.Inject(ctx, step, injected, doing.done); err != nil {
			return err
		}
		<-doing.done
		if err := r.failed(ctx, s, doing.err); err != nil {
			return err
		}
	}
	if step == 0 {
		if err := r.injector.Inject(ctx, step, injected, nil); err != nil {
			return err
		}
	}
	if at.Waits && len(r.outcome.Problems) == 0 {
		s := &r.Workload.Steps[step-1]
		if err := r.failed(ctx, s, r.user.wait(ctx, s, r.waitLimit(s))); err != nil {
			return err
		}
	}
	switch {
	case r.fault.Lasting(step):
		// The fault continues in later steps, so the objects need not match this step's baseline
		// yet.
		r.settler.Rest(ctx, step, r.baseline.Steps[step].Took+2*r.baseline.Quiet)
	case r.baseline == nil:
		if err := r.learn(ctx, step, &at); err != nil {
			return err
		}
	default:
		r.settle(ctx, step)
	}
	at.To, at.Took = r.settler.Over(), time.Since(at.Began)
	at.Objects, at.Watches = r.testbed.Recorder.Objects(), r.settler.Watches()
	r.outcome.Steps = append(r.outcome.Steps, at)
	return ctx.Err()
}

// Explorer runs a workload with and without faults.
type Explorer struct {
	// Testbeds creates the sandboxes in which the operator runs. The workload in Testbeds defines
	// only the initial state; the steps come from Explorer.Workload.
	Testbeds *testbed.Maker
	Workload *workload.Workload
	// Of lists the names of the workload files.
	Of     []string
	Limits testbed.Limits
	// Hold is the time for which the FreezeLong fault holds back events.
	Hold time.Duration
}
