// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// exceptElection are all resources but those by which leaders are elected.
var exceptElection = []string{"!" + election[0]}

// deaf is the minimum time for which an operator does not hear of the writes of another client.
const deaf = 3 * time.Second

// moment gives an operator time to act on what it sees.
const moment = time.Second

// CrashTwice kills the operator, and the next process before its first write.
func (i *injector) CrashTwice(ctx context.Context) error {
	if err := i.rules.add(againRule, fault.Match{Verbs: []string{"write"}, Resources: append(slices.Clone(exceptElection), "!events", "!events.events.k8s.io")}, fault.Count{Times: 1}, fault.Fault{Kind: fault.Hang}); err != nil {
		return err
	}
	if err := i.Crash(ctx); err != nil {
		return err
	}
	step := i.settler.step
	for end := time.Now().Add(i.base.Steps[0].Took + i.base.Steps[step].Took); !i.rules.fired(againRule) && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(look)
	}
	again := i.rules.fired(againRule)
	i.rules.remove(againRule)
	if !again {
		i.reached = false // Nothing was left to write.
		return ctx.Err()
	}
	return i.Crash(ctx)
}

// KillComponent kills a component of the control plane while a write is on its way, and starts it
// again a moment later.
func (i *injector) KillComponent(ctx context.Context, name string) error {
	i.recorder.expectBreaks()
	i.sandbox.spoilt = true
	if err := i.sandbox.dir.Control().Act(ctx, name, "kill"); err != nil {
		return err
	}
	i.notes.add("%s is killed", name)
	i.rules.remove(faultRule)
	pass(ctx, moment)
	if err := i.sandbox.dir.Control().Act(ctx, name, "start"); err != nil {
		return err
	}
	if err := i.recorder.served(ctx); err != nil {
		return fmt.Errorf("after %s was killed: %w", name, err)
	}
	i.notes.add("%s is there again", name)
	i.settler.act()
	return nil
}

// Overtake has another client write to the object of the write that is on its way, and to
// those that users made. The operator hears of it a moment after its own write has arrived.
func (i *injector) Overtake(ctx context.Context) error {
	if err := i.rules.add(freezeRule, fault.Match{Resources: exceptElection}, fault.Count{}, fault.Fault{Kind: fault.Freeze}); err != nil {
		return err
	}
	held := i.heldWrite()
	for _, v := range i.recorder.objects() {
		if i.base.Roots[v.key()] || v.key() == held {
			if i.rival.annotate(ctx, &v) {
				i.rival.annotated = append(i.rival.annotated, v)
			}
		}
	}
	// A fault in which no other client could write is none.
	i.reached = len(i.rival.annotated) > 0
	i.rules.remove(faultRule)
	began, from := time.Now(), i.log.len()
	pass(ctx, deaf)
	// On a slow machine it takes longer to see whether the waits between tries grow.
	for time.Since(began) < mostHeld && ctx.Err() == nil && undecided(i.log.since(from), i.base.Locks, time.Now()) {
		pass(ctx, look)
	}
	i.rules.remove(freezeRule)
	i.notes.add("the events arrive")
	i.settler.act()
	return ctx.Err()
}

// heldWrite is the key of the object of the write that the fault is about, empty if its name
// differs from run to run.
func (i *injector) heldWrite() string {
	if i.fault.Call.Name == "" {
		return ""
	}
	return nameKey(i.fault.Call.Resource, i.fault.Call.Namespace, i.fault.Call.Name)
}

// Pause suspends the operator, which leads, and another process takes over. Then the write
// that was on its way arrives, and the first process goes on, hears that it does not lead
// any more, and ends.
func (i *injector) Pause(ctx context.Context) error {
	first := i.operator.operator
	if err := first.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	i.notes.add("the operator is suspended")
	// However this ends: it could not be asked to end while it is suspended.
	defer first.close()
	if err := i.leadership.free(ctx); err != nil {
		return err
	}
	second := first.another()
	second.output = first.output
	if err := second.start(); err != nil {
		return err
	}
	i.operator.operator = second
	i.notes.add("another process is started")
	if !i.leadership.await(ctx, i.base.Steps[0].Took+faults.Late) {
		i.reached = false
		i.rules.remove(faultRule)
		return ctx.Err()
	}
	i.notes.add("it leads")
	pass(ctx, 2*moment)
	i.rules.remove(faultRule)
	pass(ctx, moment)
	if err := first.signal(syscall.SIGCONT); err != nil {
		return err
	}
	i.notes.add("what was on its way has arrived, and the first process goes on")
	first.awaitEnd(faults.Late)
	i.settler.act()
	return ctx.Err()
}

// CutOff breaks all connections of the operator until its process ends, or for longer than a
// lease lasts.
func (i *injector) CutOff(ctx context.Context) error {
	all := fault.Match{}
	if err := i.rules.add(againRule, all, fault.Count{}, fault.Fault{Kind: fault.Close}); err != nil {
		return err
	}
	i.rules.remove(faultRule)
	i.rules.proxy.Cut(all)
	ends := len(i.operator.ends())
	for end := time.Now().Add(faults.Late); len(i.operator.ends()) == ends && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(look)
	}
	i.rules.remove(againRule)
	if err := i.leadership.free(ctx); err != nil {
		return fmt.Errorf("after it was cut off: %w", err)
	}
	i.notes.add("connections last again")
	i.settler.act()
	return ctx.Err()
}

// pass waits for a time.
func pass(ctx context.Context, while time.Duration) {
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
}
