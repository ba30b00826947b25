// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// run is one run of the workload.
type run struct {
	*Explorer
	setting
	fault    *Fault
	baseline *Baseline

	sandbox  *sandbox
	recorder *recorder
	proxy    *proxy.Server
	log      *requestLog
	habits   *habits
	notes    *notes
	operator *processes
	programs *programs
	user     *user
	settler  *settler
	injector *injector
	judge    *judge
	outcome  *Outcome
}

// Outcome is what came of a run.
type Outcome struct {
	Steps    []StepOutcome
	Versions []Version
	Requests []Request
	// Notes are what the kit did.
	Notes []note
	// Reached: the fault was injected.
	Reached  bool
	Problems []Problem
	// Habits are what was done again and again while all was at rest.
	Habits []Learnt
	// Watches are the resources that the operator watches at the end.
	Watches []string
	Output  []string
	// Kinds are the resources of which all versions are recorded, and Never those of which none is.
	Kinds, Never []string
	Began        time.Time
	Took         time.Duration
	// stepBegan is the time of the last action of the kit: the last step began then, or later.
	stepBegan time.Time
}

// StepOutcome is what there was when a step had settled. The first is the operator's start.
type StepOutcome struct {
	Objects []Version
	// Began is when, and Revision as of which the step began.
	Began    time.Time
	Revision int64
	// From and To are the requests of the step.
	From, To int
	Took     time.Duration
	// Gap is the longest time in which nothing happened before something else did.
	Gap time.Duration
	// Watches are the resources that the operator watches then.
	Watches []string
	// Reads is how many reads, which are not watches, there were while all was quiet, and Idle
	// how many writes that changed nothing.
	Reads, Idle int
	// Waits: users wait for something before they go on.
	Waits bool
}

// note is something that the kit did.
type note struct {
	time time.Time
	text string
}

// notes are the actions of the kit in a run.
type notes struct{ all []note }

func (n *notes) add(format string, args ...any) {
	n.all = append(n.all, note{time.Now(), fmt.Sprintf(format, args...)})
}

// open makes a run in a sandbox for itself: all is there but the operator's process, which is
// not started. It lasts until what it returns is called.
func (e *Explorer) open(ctx context.Context, name string, f *Fault, b *Baseline, in setting) (opened *run, end func(), err error) {
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
	r := &run{Explorer: e, setting: in, fault: f, baseline: b, outcome: &Outcome{}, notes: &notes{}, habits: &habits{unjudged: e.Workload.Unjudged, learns: b == nil}}
	r.log = &requestLog{habits: r.habits}
	if b != nil {
		r.habits.know(b.Habits)
	}
	begin := e.lab.begin
	if in.new {
		begin = e.lab.fresh
	}
	if r.sandbox, err = begin(ctx); err != nil {
		return nil, nil, err
	}
	undo = append(undo, r.sandbox.over)
	ctx, cancel := context.WithCancel(ctx)
	undo = append(undo, cancel)
	if r.recorder, err = record(ctx, r.sandbox.config, r.habits, r.log.addLock); err != nil {
		return nil, nil, err
	}
	r.proxy, err = proxy.Start(proxy.Options{Upstream: r.sandbox.config, Namespace: "default", Listen: "127.0.0.1:0", Log: r.log})
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, func() { _ = r.proxy.Close() })
	kubeconfig, files, err := access(ctx, r.sandbox.config, r.proxy.Kubeconfig, e.lab.account)
	if err != nil {
		return nil, nil, err
	}
	scratch, err := e.Scratch()
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(scratch, name+".kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, nil, err
	}
	undo = append(undo, func() { _ = os.Remove(file) })
	r.operator = &processes{&operator{command: e.Command, kubeconfig: file, bin: e.lab.bin, path: e.lab.path(), output: &output{fail: e.FailOnLog}}}
	if !e.lab.alone {
		r.operator.environment, r.operator.serve, r.operator.networks = e.lab.environment, r.proxy.Serve, &networks{}
		if r.operator.pod, err = e.lab.pod(filepath.Join(scratch, name+".pod"), files, r.proxy.URL); err != nil {
			return nil, nil, err
		}
		undo = append(undo, func() { _ = os.RemoveAll(r.operator.pod.Files) })
		if len(e.lab.served) > 0 && !e.Workload.HostNetwork {
			end, err := r.operator.networks.serve(ctx, r.sandbox.dir.ProgramSocket())
			if err != nil {
				return nil, nil, err
			}
			undo = append(undo, end)
		}
	}
	undo = append(undo, func() { r.operator.close() })
	r.programs, err = startPrograms(r.sandbox, e.Workload.Programs)
	undo = append(undo, r.programs.end)
	if err != nil {
		return nil, nil, err
	}
	r.divide()
	return r, undoAll, nil
}

// divide makes the parts of a run, each with its own part of the work.
func (r *run) divide() {
	r.user = &user{sandbox: r.sandbox, recorder: r.recorder, limit: r.Settle}
	if r.fault != nil {
		r.user.limit += r.Patience
	}
	r.settler = &settler{
		recorder: r.recorder, log: r.log, habits: r.habits, proxy: r.proxy, base: r.baseline, fault: r.fault, most: r.Quiet, say: r.Unjudge,
	}
	other := &rival{recorder: r.recorder, notes: r.notes}
	r.injector = &injector{
		fault: r.fault, base: r.baseline, hold: r.Hold, patience: r.Patience, rules: rules{r.proxy}, rival: other, leadership: leadership{r.log, r.recorder},
		settler: r.settler, recorder: r.recorder, log: r.log, notes: r.notes, operator: r.operator, sandbox: r.sandbox,
	}
	r.judge = &judge{workload: r.Workload, base: r.baseline, fault: r.fault, recorder: r.recorder, rival: other}
}

// setting is where and when a run is played.
type setting struct {
	// new: in a sandbox that had no other run, so that it does not matter what those may have
	// left behind.
	new bool
	// over, unless it is nil, gets an item when a step is over, and after has one when the
	// next may begin: so one run follows another.
	over  chan<- struct{}
	after <-chan struct{}
}

// play plays the workload, with a fault or without.
func (e *Explorer) play(ctx context.Context, name string, f *Fault, b *Baseline, in setting) (*Outcome, error) {
	r, end, err := e.open(ctx, name, f, b, in)
	if err != nil {
		return nil, err
	}
	defer end()
	// What waits for something in this run does not outlive it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return r.play(ctx)
}

// play plays the workload.
func (r *run) play(ctx context.Context) (*Outcome, error) {
	f, b := r.fault, r.baseline
	if b != nil {
		for key := range b.Locks {
			r.log.addLock(key)
		}
	}
	r.outcome.Began = time.Now()
	err := r.playSteps(ctx)
	r.outcome.Requests = r.log.since(0)
	var incomplete error
	if r.outcome.Versions, incomplete = r.recorder.all(); err == nil {
		err = incomplete
	}
	if err == nil && f == nil {
		err = r.programs.ended()
	}
	if asked := forbidden(r.outcome.Requests); err != nil && f == nil && len(asked) > 0 {
		err = fmt.Errorf("%w\n    it may not: %s", err, mayNot(asked))
	}
	if err == nil {
		err = strangers(r.injector.rules.list(), r.outcome, b)
	}
	select {
	case crash := <-r.sandbox.crashed:
		// The operator is not to blame.
		err = crash
	default:
	}
	r.outcome.Took = time.Since(r.outcome.Began)
	r.outcome.Output = r.operator.output.tail(200)
	r.outcome.Watches, r.outcome.Kinds, r.outcome.Never = r.settler.watches(), r.recorder.kinds(), r.recorder.never
	r.outcome.Notes, r.outcome.Reached, r.outcome.stepBegan = r.notes.all, r.injector.reached, r.settler.began
	r.judge.after(r.outcome, r.operator.output.failures(), r.operator.allLastWords())
	return r.outcome, err
}

// playSteps plays all steps, or those up to the first problem.
func (r *run) playSteps(ctx context.Context) error {
	for _, v := range r.Workload.Invariants {
		if _, err := r.recorder.resource(v.Resource); err != nil {
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
		lost := r.injector.rival.lost()
		if err := r.playStep(ctx, step); errors.Is(err, errStuck) {
			r.injector.reached = false
			return nil
		} else if err != nil {
			return err
		}
		if step > 0 && r.fault != nil && step > r.fault.Step && r.Workload.Steps[step-1].mayRemoveAnnotations() {
			r.injector.rival.forgive(lost)
		}
		if r.over != nil {
			r.over <- struct{}{}
		}
		if len(r.outcome.Problems) > 0 {
			return nil
		}
	}
	if lines := r.injector.rival.lost(); len(lines) > 0 {
		r.problem(OtherState, lines...)
	}
	return nil
}

func (r *run) playStep(ctx context.Context, step int) error {
	at := StepOutcome{From: r.log.len(), Waits: step > 0 && r.Workload.Steps[step-1].Wait != nil}
	at.Began, at.Revision = r.settler.begin()
	mine := r.fault != nil && r.fault.Step == step
	var injected <-chan struct{}
	if mine {
		var err error
		if injected, err = r.injector.arm(ctx); err != nil {
			return err
		}
	}
	if step == 0 {
		r.notes.add("the operator is started")
		if err := r.operator.start(); err != nil {
			return err
		}
	} else {
		s := &r.Workload.Steps[step-1]
		r.notes.add("step %d: %s", step, oneLine(s.Name))
		doing := r.user.begin(ctx, s)
		if err := r.untilStuck(ctx, step, s, doing); err != nil {
			return err
		}
		// A command may wait for what only comes when the fault is over.
		if err := r.injector.inject(ctx, step, injected, doing.done); err != nil {
			return err
		}
		<-doing.done
		if err := r.failed(ctx, s, doing.err); err != nil {
			return err
		}
	}
	if step == 0 {
		if err := r.injector.inject(ctx, step, injected, closed); err != nil {
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
	case r.fault.lasting(step):
		// The objects of now are not those that the step comes to.
		r.settler.rest(ctx, step, r.baseline.Steps[step].Took+2*r.baseline.Quiet)
	case r.baseline == nil:
		if err := r.learn(ctx, step, &at); err != nil {
			return err
		}
	default:
		r.settle(ctx, step, &at)
	}
	at.To, at.Took = r.settler.over(), time.Since(at.Began)
	at.Objects, at.Watches = r.recorder.objects(), r.settler.watches()
	r.outcome.Steps = append(r.outcome.Steps, at)
	return ctx.Err()
}

func (r *run) problem(oracle Oracle, lines ...string) {
	r.outcome.Problems = append(r.outcome.Problems, Problem{Oracle: oracle, Step: r.settler.step, Lines: lines})
}

func indent(lines []string) string {
	if strings.TrimSpace(strings.Join(lines, "")) == "" {
		return "    (it has written nothing)\n"
	}
	text := ""
	for _, line := range lines {
		text += "    " + line + "\n"
	}
	return text
}

// Explorer plays a workload.
type Explorer struct {
	Workload *Workload
	Command  []string
	// Of are the files that say what to play, as they are named.
	Of []string
	// Dir is where results are kept, and sandboxes while they run.
	Dir string
	// Quiet is how long nothing must happen for all to be at rest, in undisturbed runs;
	// what is learnt from them makes it shorter in others.
	Quiet time.Duration
	// Settle is how long a step may take in an undisturbed run, and Patience how much
	// longer than undisturbed in others.
	Settle, Patience time.Duration
	// Hold is how long FreezeLong holds events back.
	Hold      time.Duration
	FailOnLog *regexp.Regexp
	// Unjudge, unless it is nil, is how users say that no run is judged by a field; nil: as in a
	// workload.
	Unjudge func(resource, path string) string
	// Installed, unless it is nil, looks at what was installed, and may refuse it.
	Installed func(context.Context, dynamic.Interface) error

	// Labs are shared with others; nil: it has a lab of its own.
	Labs *Labs

	scratch *scratch
	lab     *lab
	// sweep ends what operators, programs and commands of steps have left behind.
	sweep func()
}
