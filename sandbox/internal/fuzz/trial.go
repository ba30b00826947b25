// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/inject"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// trial is a single edit, a sequence of edits, or an edit with a fault.
type trial struct {
	edits []edits.Edit
	// fault is injected while the operator reacts to the edit; nil means no fault.
	fault *faults.Fault
	// want is the expected cluster state: the state after the same edit without the fault. It is
	// nil for a trial without a fault, and if the state is not known.
	want state.State
}

// name returns a unique description of the trial.
func (t trial) name() string {
	text := join(t.edits, "; at once ")
	if t.fault != nil {
		text += "; with " + t.fault.OnWrite()
	}
	return text
}

// join returns the names of edits, joined by the given separator.
func join(all []edits.Edit, between string) string {
	names := make([]string, 0, len(all))
	for _, e := range all {
		names = append(names, e.String())
	}
	return strings.Join(names, between)
}

// id returns a short hash of the trial's name.
func (t trial) id() string {
	sum := sha256.Sum256([]byte(t.name()))
	return fmt.Sprintf("%x", sum[:4])
}

// Outcomes of edits with a fault.
const (
	// disturbed means that the fault was injected.
	disturbed outcome = "with a fault"
	// notReached means that the operator never sent the request that the fault hits.
	notReached outcome = results.NotReached
)

// try runs a trial. For a trial with a fault, t.want must be set to the expected state.
func (w *world) try(ctx context.Context, t trial) (came outcome, problem *Problem, err error) {
	w.mark()
	if t.fault == nil {
		came, problem, err = w.player.play(ctx, t.edits)
	} else {
		came, problem, err = w.disturb(ctx, t)
	}
	// A trial proves nothing about the operator if another client has interfered.
	if err == nil {
		if err = w.record.strangers(w.disturber.injector.Rules.List(), w.base.managers); err != nil {
			problem = nil
		}
	}
	return came, problem, err
}

// repeat runs a trial again. For a trial with a fault, it first runs the edit without the fault and
// then, if there is no problem, with the fault. It returns the last trial that it ran, and the
// result.
func (w *world) repeat(ctx context.Context, t trial) (trial, outcome, *Problem, error) {
	without := trial{edits: t.edits}
	came, problem, err := w.try(ctx, without)
	if t.fault == nil || came != accepted || problem != nil || err != nil {
		return without, came, problem, err
	}
	if t.want != nil {
		w.base.excuse(w.base.mask.Compare(t.want, w.player.edited), otherAgain)
	}
	t.want = w.player.edited
	came, problem, err = w.try(ctx, t)
	return t, came, problem, err
}

// disturb applies an edit and injects a fault while the operator reacts. The operator must reach
// the same state as without the fault, and must return to the previous state after the edit is
// reverted. If disturb returns neither a problem nor an error, the sandbox is unchanged.
func (w *world) disturb(ctx context.Context, t trial) (outcome, *Problem, error) {
	e := t.edits[0]
	content, ok := e.Apply(w.object.sample)
	if !ok {
		return denied, nil, nil
	}
	var came outcome
	var problem *Problem
	err := w.disturber.disturb(ctx, t.fault, w.base.took+2*w.mostQuiet+inject.Stall, w.waiter.quiet, func() (bool, error) {
		var err error
		came, problem, err = w.player.editor.edit(ctx, e, content, false)
		return came == accepted && problem == nil, err
	})
	if err != nil || problem != nil || came != accepted {
		return came, problem, err
	}
	if problem, err = w.survive(ctx, t, content); err != nil {
		return came, nil, err
	}
	return judged(w.disturber.injector.Reached(), problem)
}

// judged returns the result of an edit with a fault. `reached` is set if the fault was injected. If
// the fault was not injected, a problem is returned as an error, unless the problem is certain
// after one run, such as a panic.
func judged(reached bool, problem *Problem) (outcome, *Problem, error) {
	switch {
	case reached:
		return disturbed, problem, nil
	case problem != nil && !problem.certain():
		return notReached, nil, fmt.Errorf("the fault was not reached, and yet %s", problem.summary())
	}
	return notReached, problem, nil
}

// survive checks that the operator reaches the state t.want after an edit with a fault. Then it
// reverts the edit, and checks that the cluster returns to its state before the edit.
func (w *world) survive(ctx context.Context, t trial, content map[string]any) (*Problem, error) {
	_, problem, err := w.waiter.reach(ctx, goal{state: t.want, written: w.object.written(content, false)})
	if err != nil || problem != nil {
		return problem.when("after " + t.name() + ", compared with the same without the fault"), err
	}
	problem, err = w.player.restorer.back(ctx, content, meant(t.edits))
	if err != nil || problem != nil {
		return problem, err
	}
	return w.record.broken()
}

// disturber injects faults into the operator's reaction to an edit.
type disturber struct {
	injector *inject.Injector
	process  *process
}

// disturb calls `do`, which makes an edit, and injects a fault into the operator's writes in
// response. It gives up after `limit`, or if nothing has changed for much longer than `calm`. If
// `do` returns false because it has changed nothing, no fault is injected.
func (d *disturber) disturb(ctx context.Context, f *faults.Fault, limit, calm time.Duration, do func() (changed bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.injector.Rules.Remove(faults.FaultRule)
	d.process.breaks = f.Effects().BreaksConnections
	d.injector.Aim(f)
	injected, err := d.injector.Arm(ctx)
	if err != nil {
		return err
	}
	if changed, err := do(); err != nil || !changed {
		d.injector.Rules.Remove(faults.FaultRule)
		return err
	}
	if fired, err := d.injector.Strike(ctx, injected, nil, limit, calm); err != nil || !fired || f.Entry().Duration() == 0 {
		return err
	}
	select {
	case <-time.After(f.Entry().Duration()):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
