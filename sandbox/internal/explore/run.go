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
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// run is one run of the workload.
type run struct {
	*Explorer
	fault    *Fault
	baseline *Baseline

	sandbox  *sandbox
	recorder *recorder
	proxy    *proxy.Server
	log      *requestLog
	operator *operator
	began    time.Time
	outcome  *Outcome
	// stepBegan is when the present step began.
	stepBegan time.Time
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
	// Watches are the resources that the operator watches at the end.
	Watches []string
	Output  []string
	Began   time.Time
	Took    time.Duration
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
	// Reads is how many reads, which are not watches, there were while all was quiet.
	Reads int
}

// note is something that the kit did.
type note struct {
	time time.Time
	text string
}

func (r *run) note(format string, args ...any) {
	r.outcome.Notes = append(r.outcome.Notes, note{time.Now(), fmt.Sprintf(format, args...)})
}

// play plays the workload, with a fault or without.
func (e *Explorer) play(ctx context.Context, name string, f *Fault, b *Baseline) (*Outcome, error) {
	r := &run{Explorer: e, fault: f, baseline: b, outcome: &Outcome{}, log: &requestLog{}}
	var err error
	if r.sandbox, err = e.lab.begin(ctx, name); err != nil {
		return nil, err
	}
	defer r.sandbox.remove()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.recorder, err = record(ctx, r.sandbox.config, r.log.addLock); err != nil {
		return nil, err
	}
	r.proxy, err = proxy.Start(proxy.Options{Upstream: r.sandbox.config, Namespace: "default", Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Log: r.log})
	if err != nil {
		return nil, err
	}
	defer r.proxy.Close()
	kubeconfig := filepath.Join(e.lab.dir, name+".kubeconfig")
	if err := os.WriteFile(kubeconfig, r.proxy.Kubeconfig, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(kubeconfig)
	if b != nil {
		for key := range b.Locks {
			r.log.addLock(key)
		}
	}
	r.operator = &operator{command: e.Command, kubeconfig: kubeconfig, bin: e.lab.bin, path: e.lab.path(), output: &output{fail: e.FailOnLog}}
	defer r.operator.close()
	r.began = time.Now()
	r.outcome.Began = r.began
	err = r.playSteps(ctx)
	r.outcome.Requests = r.log.since(0)
	var incomplete error
	if r.outcome.Versions, incomplete = r.recorder.all(); err == nil {
		err = incomplete
	}
	r.outcome.Took = time.Since(r.began)
	r.outcome.Output = r.operator.output.tail(200)
	r.outcome.Watches = r.watches()
	r.judge()
	return r.outcome, err
}

// playSteps plays all steps, or those up to the first problem.
func (r *run) playSteps(ctx context.Context) error {
	for step := range len(r.Workload.Steps) + 1 {
		if err := r.playStep(ctx, step); err != nil {
			return err
		}
		if len(r.outcome.Problems) > 0 {
			return nil
		}
	}
	return nil
}

func (r *run) playStep(ctx context.Context, step int) error {
	at := StepOutcome{Began: time.Now(), From: r.log.len(), Revision: r.recorder.revision()}
	r.stepBegan = at.Began
	mine := r.fault != nil && r.fault.Step == step
	var injected <-chan struct{}
	if mine {
		var err error
		if injected, err = r.arm(ctx); err != nil {
			return err
		}
	}
	if step == 0 {
		r.note("the operator is started")
		if err := r.operator.start(); err != nil {
			return err
		}
	} else {
		s := &r.Workload.Steps[step-1]
		r.note("step %d: %s", step, oneLine(s.Name))
		if err := r.performIn(ctx, s); err != nil {
			return err
		}
	}
	if err := r.inject(ctx, step, injected); err != nil {
		return err
	}
	lasting := r.fault.freezes() && step >= r.fault.Step && step < r.fault.Until
	switch {
	case lasting:
		// The objects of now are not those that the step comes to.
		r.rest(ctx, r.baseline.Steps[step].Took+2*r.baseline.Quiet)
	case r.baseline == nil:
		if err := r.learn(ctx, step, &at); err != nil {
			return err
		}
	default:
		r.settle(ctx, step, &at)
	}
	at.To, at.Took = r.log.len(), time.Since(at.Began)
	at.Objects, at.Watches = r.recorder.objects(), r.watches()
	r.outcome.Steps = append(r.outcome.Steps, at)
	return ctx.Err()
}

// performIn performs a step of the workload. With a fault, what it waits for may take
// longer; and while events are held back, it may not come at all.
func (r *run) performIn(ctx context.Context, s *Step) error {
	limit := time.Duration(0)
	if r.fault != nil && s.Wait != nil {
		limit = s.Wait.Timeout.Duration + r.Patience
		if step := len(r.outcome.Steps); r.fault.freezes() && step >= r.fault.Step && step <= r.fault.Until {
			limit = 3 * time.Second
		}
	}
	err := r.perform(ctx, s, limit)
	var waited *waitError
	switch {
	case errors.As(err, &waited) && r.fault == nil:
		return fmt.Errorf("step %d: %w, though nothing was disturbed: the operator does not do what the workload waits for, or needs more time (timeout); its output ends with\n%s",
			len(r.outcome.Steps), err, indent(r.operator.output.tail(10)))
	case errors.As(err, &waited):
		if !r.fault.freezes() {
			r.problem(NotReached, waited.Error())
		}
		return nil
	case err != nil && r.fault == nil:
		return fmt.Errorf("step %d (%s): %w", len(r.outcome.Steps), oneLine(s.Name), err)
	case err != nil && ctx.Err() == nil:
		r.problem(NotReached, fmt.Sprintf("step %d (%s): %v", len(r.outcome.Steps), oneLine(s.Name), err))
		return nil
	}
	return err
}

// quietFor returns since when nothing has happened: no write of the operator, and no
// change of any object.
func (r *run) quietFor() time.Duration {
	last := r.stepBegan
	for _, at := range []time.Time{r.log.quietSince(), r.recorder.quietSince()} {
		if at.After(last) {
			last = at
		}
	}
	return time.Since(last)
}

// look is how often it is looked whether all is at rest.
const look = 50 * time.Millisecond

// learn waits, in an undisturbed run, until all is at rest, and for how long nothing
// happens before that.
func (r *run) learn(ctx context.Context, step int, at *StepOutcome) error {
	limit := time.After(r.Settle)
	var previous time.Duration
	for {
		quiet := r.quietFor()
		if quiet < previous {
			at.Gap = max(at.Gap, previous)
		}
		previous = quiet
		if quiet >= r.Quiet && len(r.watches()) > 0 {
			at.Reads = r.readsIn(quiet)
			at.Gap = min(at.Gap, r.Quiet)
			return nil
		}
		if ends := r.operator.ends(); len(ends) > 0 {
			return fmt.Errorf("the operator ended (%s), though nothing was disturbed; its output ends with\n%s", ends[0], indent(r.operator.output.tail(10)))
		}
		select {
		case <-time.After(look):
		case <-limit:
			if len(r.watches()) == 0 {
				return fmt.Errorf("the operator has not opened a watch in %s: it does not use $KUBECONFIG, or does not start; its output ends with\n%s", r.Settle, indent(r.operator.output.tail(10)))
			}
			return fmt.Errorf("step %d did not come to rest in %s, though nothing was disturbed: the last writes were\n%s", step, r.Settle, indent(r.lastWrites(5)))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rest waits until all is at rest, or the time is over.
func (r *run) rest(ctx context.Context, limit time.Duration) {
	over := time.After(limit)
	for r.quietFor() < r.baseline.Quiet {
		select {
		case <-time.After(look):
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// settle waits until all is at rest and as in the undisturbed runs, and notes a problem if
// it does not come to that.
func (r *run) settle(ctx context.Context, step int, at *StepOutcome) {
	base := &r.baseline.Steps[step]
	limit := time.After(base.Took + r.Patience)
	for {
		var missing, differences []string
		quiet := r.quietFor() >= r.baseline.Quiet
		if quiet {
			if missing = r.missingWatches(); len(missing) == 0 {
				differences = base.Mask.diff(base.State, r.baseline.names.state(r.recorder.objects(), r.baseline.Locks))
			}
			if len(missing)+len(differences) == 0 {
				at.Reads = r.readsIn(r.baseline.Quiet)
				return
			}
		}
		select {
		case <-time.After(look):
		case <-limit:
			switch {
			case !quiet:
				r.problem(NotAtRest, append([]string{"it does not come to rest; the last writes are"}, r.lastWrites(5)...)...)
			case len(missing) > 0:
				r.problem(NotReached, fmt.Sprintf("the operator does not watch %v any more", missing))
			default:
				r.problem(OtherState, differences...)
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// watches returns the resources that the operator watches.
func (r *run) watches() []string { return r.proxy.Watched() }

// missingWatches returns the resources that the operator watches as soon as it has started,
// and does not watch now: it is not up yet. Others are only watched when they are needed.
func (r *run) missingWatches() []string {
	now := r.watches()
	return slices.DeleteFunc(slices.Clone(r.baseline.AtStart), func(resource string) bool { return slices.Contains(now, resource) })
}

// readsIn counts the reads of the last while.
func (r *run) readsIn(while time.Duration) int {
	n := 0
	since := time.Now().Add(-while)
	for _, request := range r.log.since(r.lastIndex()) {
		if request.Time.After(since) && (request.Verb == "get" || request.Verb == "list") && request.Resource != "" &&
			!slices.Contains(election, request.Resource) && !r.locks()[request.Resource+" "+request.Namespace+"/"+request.Name] {
			n++
		}
	}
	return n
}

// lastIndex is where the requests of the present step begin.
func (r *run) lastIndex() int {
	if n := len(r.outcome.Steps); n > 0 {
		return r.outcome.Steps[n-1].To
	}
	return 0
}

func (r *run) locks() map[string]bool {
	if r.baseline == nil {
		return nil
	}
	return r.baseline.Locks
}

// lastWrites returns the last writes of the operator.
func (r *run) lastWrites(n int) []string {
	var lines []string
	for _, request := range r.log.since(0) {
		if request.writes(r.locks()) {
			lines = append(lines, request.String())
		}
	}
	return lines[max(0, len(lines)-n):]
}

func indent(lines []string) string {
	text := ""
	for _, line := range lines {
		text += "    " + line + "\n"
	}
	return text
}

// remove removes a rule that is there.
func (r *run) remove(name string) { r.proxy.Rules().Remove(name) }

// rule adds a rule.
func (r *run) rule(name string, match fault.Match, count fault.Count, f fault.Fault) error {
	return r.proxy.Rules().Add(fault.Rule{Name: name, Match: match, Count: count, Fault: f})
}

// Explorer plays a workload.
type Explorer struct {
	Workload *Workload
	Command  []string
	// Dir is where results are kept.
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

	lab *lab
}

// lockKeys returns the objects by which the operator elects its leader.
func lockKeys(requests []Request, versions []Version) map[string]bool {
	keys := map[string]bool{}
	for i := range requests {
		if r := &requests[i]; slices.Contains(election, r.Resource) && slices.Contains(writeVerbs, r.Verb) {
			keys[nameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	for i := range versions {
		if _, is := versions[i].Object.GetAnnotations()[leaderAnnotation]; is {
			keys[versions[i].key()] = true
		}
	}
	return keys
}

// leaderAnnotation marks a ConfigMap by which old clients elect their leader.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
