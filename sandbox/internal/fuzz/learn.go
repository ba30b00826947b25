// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// baseline describes the operator's behavior without an edit.
type baseline struct {
	// before and state are the cluster states without and with the sample object.
	before, state state.State
	mask          *Mask
	// quiet is the time without changes after which the cluster is considered quiet. took is the
	// time from the creation of the sample object until the cluster is quiet.
	quiet, took time.Duration
	// busy is the number of requests per second above which the operator is considered to be in a
	// hot loop (an endless stream of requests).
	busy float64
	// observed is set if the operator writes status.observedGeneration.
	observed bool
	// fresh is set if edits can also be tested with new objects, because the operator lets the
	// sample object be deleted and recreated.
	fresh bool
	// watched lists the resources that the operator watches both right after its start and once the
	// sample object exists.
	watched []string
	// idle is set if the operator wrote nothing in response to the sample object.
	idle bool
	// reports summarizes the status that the operator writes for the unedited sample object, as
	// returned by the function reports.
	reports string
	// habits is the set of changes that recur forever in an otherwise quiet cluster, such as a
	// field that changes back and forth.
	habits map[observe.Habit]bool
	// managers is the set of the field managers of all objects. A trial is invalid if a client with
	// another field manager writes to an object.
	managers map[string]bool
	// progress receives a line for each masked difference.
	progress io.Writer
}

// describe summarizes the baseline in a line.
func (b *baseline) describe() string {
	text := fmt.Sprintf("the sample comes to %d more objects in %s, and all is at rest when nothing happens for %s",
		len(b.state)-len(b.before)-1, b.took.Round(100*time.Millisecond), b.quiet.Round(100*time.Millisecond))
	if !b.observed {
		text += "; the operator writes no status.observedGeneration"
	}
	if !b.fresh {
		text += "; it does not let the sample be deleted, so no new objects are compared"
	}
	return text
}

// Reasons for masking a difference, as shown to users.
const (
	differsUnedited = "differs between two times that the sample was made"
	leftBehind      = "is left behind by the sample that was deleted"
	otherInNew      = "differs in a new sandbox with the sample"
	otherAgain      = "differs between two times that the same edit was made"
	anotherEachTime = "has another value each time that an edit is made and taken back"
)

// excuse excludes differences from comparisons in all sandboxes from now on. It prints each
// excluded difference with the reason, `why`.
func (b *baseline) excuse(differences []Difference, why string) {
	for _, masked := range b.mask.Learn(differences, why) {
		fmt.Fprintf(b.progress, "not judged from now on, as it %s: %s\n", why, masked)
	}
}

// ignoredFields returns the fields that the user excludes from comparisons. Changes of these fields
// then do not count as activity in the cluster.
func (f *Fuzzer) ignoredFields() []workload.Unjudged {
	var all []workload.Unjudged
	for _, own := range f.Ignore {
		if resource, path, some := strings.Cut(own, " "); some {
			all = append(all, workload.Unjudged{Resource: resource, Path: path})
		}
	}
	return all
}

// ignoreFlag returns the command-line flag that excludes a field from comparisons.
func ignoreFlag(resource, path string) string { return fmt.Sprintf("--ignore '%s %s'", resource, path) }

// prepare creates the initial cluster state from the manifests and the objects that the sample
// object needs, and determines the kind of the sample object.
func (f *Fuzzer) prepare(ctx context.Context, progress io.Writer) error {
	if f.Ready != "" {
		ready, err := condition.Compile(f.Ready, workload.ObjectsVariable)
		if err != nil {
			return fmt.Errorf("--ready: %w", err)
		}
		f.ready = ready
	}
	w := *f.Testbeds.Workload
	w.Unjudged = slices.Concat(w.Unjudged, f.ignoredFields())
	if f.Others != "" {
		dir, err := f.Testbeds.Scratch()
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "others.yaml")
		if err := os.WriteFile(file, []byte(f.Others), 0o600); err != nil {
			return err
		}
		w.Install = append(slices.Clone(w.Install), file)
	}
	f.Testbeds.Workload = &w
	f.Testbeds.Installed = func(ctx context.Context, client dynamic.Interface) (err error) {
		f.target, err = find(ctx, client, f.Sample)
		return err
	}
	return f.Testbeds.Prepare(ctx, progress)
}

// learn determines the baseline (the operator's behavior without an edit). It creates the sample
// object twice, and masks the differences between the two resulting states. The returned sandbox
// contains the sample object.
func (f *Fuzzer) learn(ctx context.Context, progress io.Writer) (_ *world, err error) {
	if err := f.prepare(ctx, progress); err != nil {
		return nil, err
	}
	f.base = &baseline{mask: NewMask(f.Ignore), habits: map[observe.Habit]bool{}, quiet: f.Limits.Quiet, busy: mostBusy, progress: progress}
	w, err := f.open(ctx, "learn")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.testbed.End()
		}
	}()
	l := &learner{w, f.Limits, f.ready}
	fmt.Fprintln(progress, "Learning what the sample comes to.")
	if err := w.process.start(); err != nil {
		return nil, err
	}
	if f.base.before, err = l.next(ctx, "the operator was started", nil); err != nil {
		return nil, err
	}
	watched := w.waiter.watched()
	w.waiter.gap = 0 // The operator's startup time is not a pause between two changes.
	if f.base.state, err = l.create(ctx); err != nil {
		return nil, err
	}
	f.base.idle = len(w.record.reactions()) == 0
	if text := lab.MayNot(w.testbed.Log.Since(0)); text != "" {
		fmt.Fprintf(progress, "warning: the operator may not: %s\n", text)
	}
	w.waiter.objects = w.testbed.Recorder.Count()
	now := w.waiter.watched()
	f.base.watched = slices.DeleteFunc(watched, func(resource string) bool { return !slices.Contains(now, resource) })
	f.base.busy = max(busy, 2*float64(w.record.activity(w.waiter.quiet).requests)/w.waiter.quiet.Seconds())
	if o := w.object.find(); o != nil {
		f.base.observed, f.base.reports = observed(o) > 0, reports(o)
	}
	f.base.quiet = min(max(w.waiter.gap+w.waiter.gap/2+500*time.Millisecond, time.Second), f.Limits.Quiet)
	f.base.managers = w.record.managers()
	err = l.createAgain(ctx)
	maps.Copy(f.base.managers, w.record.managers())
	w.testbed.Habits.Know(f.base.habits)
	w.waiter.quiet = f.base.quiet
	return w, err
}

// learner determines the cluster states without the sample object and with the unedited sample
// object.
type learner struct {
	world  *world
	limits testbed.Limits
	ready  *condition.Condition
}

// next waits until the cluster is quiet after an action, and returns the state. If `ready` is not nil,
// it also waits until the sample meets it. It returns any problem as an error, in which `when`
// describes the action.
func (l *learner) next(ctx context.Context, when string, ready *condition.Condition) (state.State, error) {
	w := l.world
	state, problem, err := w.waiter.wait(ctx, goal{learns: true, ready: ready}, l.limits.Settle)
	if err == nil && problem != nil {
		err = undisturbed(when, problem, nil)
		if lines := w.record.settler.Advice(); problem.Oracle == judge.NotAtRest && len(lines) > 0 {
			err = fmt.Errorf("%w\n%s", err, words.Indent(lines))
		}
		err = errors.Join(w.testbed.Programs.Ended(), err)
		if output := w.testbed.Operator.Output.Tail(10); strings.TrimSpace(strings.Join(output, "")) != "" {
			err = fmt.Errorf("%w; the operator's output ends with\n%s", err, words.Indent(output))
		}
		if text := lab.MayNot(w.testbed.Log.Since(0)); text != "" {
			err = fmt.Errorf("%w\n    it may not: %s", err, text)
		}
	}
	for _, learnt := range w.testbed.Habits.Learnt(w.waiter.quiet) {
		w.base.habits[learnt.Habit] = true
		for _, masked := range learnt.Mask(observe.Names{}, w.base.mask.Mask) {
			fmt.Fprintf(w.base.progress, "Not judged, as it %s: %s\n", masked.Why, masked)
		}
	}
	return state, err
}

// create creates the sample object, and returns the resulting cluster state.
func (l *learner) create(ctx context.Context) (state.State, error) {
	w := l.world
	w.mark()
	if err := w.object.create(ctx, w.object.sample); err != nil {
		return nil, fmt.Errorf("--object: create it: %w", err)
	}
	state, err := l.next(ctx, "the sample was created", l.ready)
	w.base.took = max(w.base.took, time.Since(w.record.began))
	return state, err
}

// createAgain deletes and recreates the sample object. If this results in other objects or fields,
// createAgain doubles the quiet time (the time without changes to wait for) and tries again. The
// reason is that a busy machine may have stalled the operator for longer than the quiet time. It
// masks leftovers of the first sample object, and differences between the last two states.
func (l *learner) createAgain(ctx context.Context) error {
	w := l.world
	for ; ; w.waiter.quiet *= 2 {
		again, err := l.recreate(ctx)
		if err != nil || again == nil {
			return err
		}
		differences := w.base.mask.Compare(w.base.state, again)
		i := slices.IndexFunc(differences, Difference.IsIncomplete)
		if i < 0 || w.waiter.quiet >= l.limits.MostQuiet() {
			w.base.mask.Learn(differences, differsUnedited)
			return nil
		}
		fmt.Fprintf(w.base.progress, "The sample comes to other objects or fields when it is made again, such as %s: learning again, with a quiet time of %s.\n", differences[i], 2*w.waiter.quiet)
		w.base.state, w.waiter.objects = again, w.testbed.Recorder.Count()
		w.base.quiet *= 2
	}
}

// recreate deletes and recreates the sample object, and returns the cluster state. If the operator
// does not let the object be deleted, it restarts the operator with a new sample object, and
// returns nil.
func (l *learner) recreate(ctx context.Context) (state.State, error) {
	w := l.world
	if err := w.object.remove(ctx); err != nil {
		return nil, err
	}
	w.record.act("the sample is deleted")
	state, problem, err := w.waiter.reach(ctx, goal{gone: true, state: w.base.before})
	switch {
	case err != nil:
		return nil, err
	case problem != nil && problem.Oracle == judge.Failed:
		return nil, undisturbed("the sample was deleted", problem, nil)
	case problem != nil && problem.Oracle != judge.OtherState:
		return nil, w.renew(ctx)
	}
	w.base.fresh = true
	w.base.mask.Learn(w.base.mask.Compare(w.base.before, state), leftBehind)
	again, err := l.create(ctx)
	w.base.idle = w.base.idle && len(w.record.reactions()) == 0
	return again, err
}
