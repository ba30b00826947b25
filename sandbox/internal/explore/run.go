// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/inject"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/words"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// run is a run of the workload, in a sandbox of its own.
type run struct {
	*Explorer
	setting
	fault    *faults.Fault
	baseline *baseline.Baseline

	sandbox  *lab.Sandbox
	recorder *observe.Recorder
	proxy    *proxy.Server
	log      *observe.Log
	habits   *observe.Habits
	notes    *observe.Notes
	operator *operator.Processes
	programs *lab.Programs
	user     *user
	settler  *settle.Settler
	injector *inject.RunInjector
	judge    *judge.Judge
	outcome  *judge.Outcome
	// stuck is set if the command of a step waits for a change that the fault holds back: then the
	// fault counts as not reached.
	stuck bool
}

// open prepares a run in a sandbox of its own; the operator is not started yet. The caller must
// call end, which stops the operator and returns the sandbox.
func (e *Explorer) open(ctx context.Context, name string, f *faults.Fault, b *baseline.Baseline, in setting) (opened *run, end func(), err error) {
	var undo []func()
	undoAll := func() {
		for _, do := range slices.Backward(undo) {
			do()
		}
	}
	defer func() {
		if err != nil {
			undoAll()
		}
	}()
	r := &run{Explorer: e, setting: in, fault: f, baseline: b, outcome: &judge.Outcome{}, notes: &observe.Notes{}, habits: &observe.Habits{Unjudged: e.Workload.Unjudged, Learns: b == nil}}
	r.log = &observe.Log{Habits: r.habits}
	if b != nil {
		r.habits.Know(b.Habits)
	}
	begin := e.lab.Begin
	if in.new {
		begin = e.lab.Fresh
	}
	if r.sandbox, err = begin(ctx); err != nil {
		return nil, nil, err
	}
	undo = append(undo, r.sandbox.Over)
	ctx, cancel := context.WithCancel(ctx)
	undo = append(undo, cancel)
	if r.recorder, err = observe.Start(ctx, r.sandbox.Config, r.habits, r.log.AddLock); err != nil {
		return nil, nil, err
	}
	r.proxy, err = proxy.Start(proxy.Options{Upstream: r.sandbox.Config, Namespace: "default", Listen: "127.0.0.1:0", Log: r.log})
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, func() { _ = r.proxy.Close() })
	scratch, err := e.Scratch()
	if err != nil {
		return nil, nil, err
	}
	first, end, err := r.sandbox.Operator(ctx, filepath.Join(scratch, name), e.Command, r.proxy, e.FailOnLog)
	undo = append(undo, end)
	if err != nil {
		return nil, nil, err
	}
	r.operator = &operator.Processes{Operator: first}
	undo = append(undo, func() { r.operator.Close() })
	r.programs, err = lab.StartPrograms(r.sandbox, e.Workload.Programs)
	undo = append(undo, r.programs.End)
	if err != nil {
		return nil, nil, err
	}
	r.divide()
	return r, undoAll, nil
}

// divide creates the parts of a run: its user, settler, injector and judge.
func (r *run) divide() {
	r.user = &user{sandbox: r.sandbox, recorder: r.recorder, limit: r.Settle}
	if r.fault != nil {
		r.user.limit += r.Patience
	}
	r.settler = &settle.Settler{
		Recorder: r.recorder, Log: r.log, Habits: r.habits, Proxy: r.proxy, Base: r.baseline, Fault: r.fault, Most: cmp.Or(r.quiet, r.Quiet), Say: r.Unjudge,
	}
	other := &inject.Rival{Recorder: r.recorder, Notes: r.notes}
	r.injector = inject.New(inject.Parts{
		Rules: inject.Rules{Proxy: r.proxy}, Rival: other, Leadership: inject.Leadership{Log: r.log, Recorder: r.recorder}, Settler: r.settler,
		Recorder: r.recorder, Log: r.log, Notes: r.notes, Operator: r.operator, Component: r.sandbox.Act,
	}).InRun(r.fault, r.baseline, r.Hold, r.Patience)
	r.judge = &judge.Judge{Workload: r.Workload, Base: r.baseline, Fault: r.fault, Recorder: r.recorder, Rival: other}
}

// setting configures the sandbox of a run, and its order among other runs.
type setting struct {
	// new plays in a sandbox in which no other run was played, so that leftovers of earlier runs
	// cannot matter.
	new bool
	// over, unless it is nil, receives an item after each step, and a step begins only when after
	// has an item. Two runs that share a channel are played a step apart.
	over  chan<- struct{}
	after <-chan struct{}
	// quiet replaces the quiet time of a baseline run, unless it is 0.
	quiet time.Duration
}

// play opens a run and plays the workload in it, with the fault f, or without a fault if f is
// nil.
func (e *Explorer) play(ctx context.Context, name string, f *faults.Fault, b *baseline.Baseline, in setting) (*judge.Outcome, error) {
	r, end, err := e.open(ctx, name, f, b, in)
	if err != nil {
		return nil, err
	}
	defer end()
	// The goroutines of this run end with it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return r.play(ctx)
}

// play plays the workload, and judges the record of the run.
func (r *run) play(ctx context.Context) (*judge.Outcome, error) {
	f, b := r.fault, r.baseline
	if b != nil {
		for key := range b.Locks {
			r.log.AddLock(key)
		}
	}
	r.outcome.Began = time.Now()
	err := r.playSteps(ctx)
	r.outcome.Requests = r.log.Since(0)
	var incomplete error
	if r.outcome.Versions, incomplete = r.recorder.All(); err == nil {
		err = incomplete
	}
	if err == nil && f == nil {
		err = r.programs.Ended()
	}
	if asked := lab.Forbidden(r.outcome.Requests); err != nil && f == nil && len(asked) > 0 {
		err = fmt.Errorf("%w\n    it may not: %s", err, lab.MayNot(asked))
	}
	if err == nil {
		err = judge.Strangers(r.injector.Rules.List(), &r.outcome.Record, b)
	}
	select {
	case crash := <-r.sandbox.Crashed:
		// A crash of the sandbox is not a problem of the operator.
		err = crash
	default:
	}
	r.outcome.Took = time.Since(r.outcome.Began)
	r.outcome.Output = r.operator.Output.Tail(200)
	r.outcome.Watches, r.outcome.Kinds, r.outcome.Never = r.settler.Watches(), r.recorder.Kinds(), r.recorder.Never
	r.outcome.Notes, r.outcome.Reached, r.outcome.StepBegan = r.notes.All, r.injector.Reached() && !r.stuck, r.settler.Began
	r.judge.After(r.outcome, r.operator.Output.Failures(), r.operator.AllLastWords())
	return r.outcome, err
}

// playSteps plays the steps in order, and stops after the first step with a problem.
func (r *run) playSteps(ctx context.Context) error {
	for _, v := range r.Workload.Invariants {
		if _, err := r.recorder.Resource(v.Resource); err != nil {
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
	at := observe.StepOutcome{From: r.log.Len(), Waits: step > 0 && r.Workload.Steps[step-1].Wait != nil}
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
		r.notes.Add("the operator is started")
		if err := r.operator.Start(); err != nil {
			return err
		}
	} else {
		s := &r.Workload.Steps[step-1]
		r.notes.Add("step %d: %s", step, words.OneLine(s.Name))
		doing := r.user.begin(ctx, s)
		if err := r.untilStuck(ctx, step, s, doing); err != nil {
			return err
		}
		// The command of a step may wait for a change that arrives only after the fault is over.
		if err := r.injector.Inject(ctx, step, injected, doing.done); err != nil {
			return err
		}
		<-doing.done
		if err := r.failed(ctx, s, doing.err); err != nil {
			return err
		}
	}
	if step == 0 {
		if err := r.injector.Inject(ctx, step, injected, closed); err != nil {
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
		// The fault lasts beyond this step, so that the objects need not match the end of the step
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
	at.Objects, at.Watches = r.recorder.Objects(), r.settler.Watches()
	r.outcome.Steps = append(r.outcome.Steps, at)
	return ctx.Err()
}

// Explorer plays a workload with and without faults.
type Explorer struct {
	Workload *workload.Workload
	Command  []string
	// Of are the names of the files that the workload was read from.
	Of []string
	// Dir is the directory for results, and for sandboxes while they run.
	Dir string
	// Quiet is the time without a change after which the cluster counts as quiet in baseline runs.
	// Other runs use a shorter time, which is learned from the baseline.
	Quiet time.Duration
	// Settle limits the time of a step in a baseline run. Patience is the time that a step may take
	// beyond its time in the baseline in a run with a fault.
	Settle, Patience time.Duration
	// Hold is the time for which FreezeLong holds back events.
	Hold      time.Duration
	FailOnLog *regexp.Regexp
	// Unjudge, unless it is nil, returns the advice to users about excluding a field from the
	// verdict; nil gives the advice for a workload.
	Unjudge func(resource, path string) string
	// Installed, unless it is nil, checks the installed objects. An error from Installed ends
	// Prepare.
	Installed func(context.Context, dynamic.Interface) error

	// Labs are sandboxes shared with other explorers; nil: this explorer creates its own.
	Labs *lab.Labs

	scratch *lab.Scratch
	lab     *lab.Lab
	// sweep kills processes that operators, programs and commands of steps have left running.
	sweep func()
}
