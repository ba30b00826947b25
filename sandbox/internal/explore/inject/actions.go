// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// exceptElection matches all resources except for Leases, which are used for leader election.
var exceptElection = []string{"!" + observe.Election[0]}

// deaf is the minimum time for which Overtake hides the changes of another client from the
// operator.
const deaf = 3 * time.Second

// moment is the duration of a short wait during a fault, in which the operator or the cluster can
// react.
const moment = time.Second

// CrashTwice restarts the operator twice. The second restart happens at the new process's first
// write, which does not reach the API server. If the new process writes nothing, there is no second
// restart.
func (i *RunInjector) CrashTwice(ctx context.Context) error {
	if err := i.Rules.add(faults.AgainRule, fault.Match{Verbs: []string{"write"}, Resources: append(slices.Clone(exceptElection), "!events", "!events.events.k8s.io")}, fault.Count{Times: 1}, fault.Fault{Kind: fault.Hang}); err != nil {
		return err
	}
	if err := i.Crash(ctx); err != nil {
		return err
	}
	step := &i.base.Steps[i.Settler.Step]
	// A new process that is idle after its start has nothing to write.
	idle := func() bool {
		return len(i.Settler.MissingWatches()) == 0 && i.Settler.QuietFor() > max(2*step.Quiet, Stall)
	}
	await(ctx, i.base.Steps[0].Took+step.Took+i.patience, func() bool { return i.Rules.fired(faults.AgainRule) || idle() })
	again := i.Rules.fired(faults.AgainRule)
	i.Rules.Remove(faults.AgainRule)
	if !again {
		return ctx.Err()
	}
	return i.Crash(ctx)
}

// KillComponent kills a control plane component while the proxy delays a write of the operator, and
// restarts the component shortly afterwards.
func (i *Injector) KillComponent(ctx context.Context, name string) error {
	i.Recorder.ExpectBreaks()
	if err := i.Component(ctx, name, "kill"); err != nil {
		return err
	}
	i.Notes.Add("%s is killed", name)
	i.Rules.Remove(faults.FaultRule)
	pass(ctx, moment)
	if err := i.Component(ctx, name, "start"); err != nil {
		return err
	}
	if err := i.Recorder.Served(ctx); err != nil {
		return fmt.Errorf("after %s was killed: %w", name, err)
	}
	i.Notes.Add("%s is available again", name)
	i.Settler.Act()
	return nil
}

// Overtake acts as another client: it annotates the object of the operator's delayed write and the
// objects that users created, then lets the delayed write through. The operator receives the events
// of the annotations later.
func (i *RunInjector) Overtake(ctx context.Context) error {
	if err := i.Rules.add(faults.FreezeRule, fault.Match{Resources: exceptElection}, fault.Count{}, fault.Fault{Kind: fault.Freeze}); err != nil {
		return err
	}
	held := i.heldWrite()
	// Wait until the recorder knows the object of the delayed write. On a slow machine, the
	// operator may receive the object's events earlier than the recorder, and the object would not
	// be annotated.
	await(ctx, faults.Late, func() bool { return held == "" || i.Recorder.Knows(held) })
	heard := false
	for _, v := range i.Recorder.Objects() {
		if i.base.Roots[v.Key()] || v.Key() == held {
			if i.Rival.annotate(ctx, &v) {
				i.Rival.annotated = append(i.Rival.annotated, v)
				heard = heard || slices.Contains(i.base.Watched, v.Resource)
			}
		}
	}
	i.Rules.Remove(faults.FaultRule)
	began, from := time.Now(), i.Log.Len()
	pass(ctx, deaf)
	if heard {
		// The annotations cause watch events for the operator. Wait until the proxy is holding them
		// back, because otherwise its rule could be removed before they arrive.
		await(ctx, faults.Late, func() bool { return i.Rules.fired(faults.FreezeRule) })
	}
	// Wait longer if the operator's retries do not yet show whether it backs off. On a slow
	// machine, it retries less often.
	for time.Since(began) < observe.MostHeld && ctx.Err() == nil && observe.Undecided(i.Log.Since(from), i.base.Locks, time.Now()) {
		pass(ctx, observe.Look)
	}
	i.Rules.Remove(faults.FreezeRule)
	i.Notes.Add("the events arrive")
	i.Settler.Act()
	return ctx.Err()
}

// heldWrite returns the key of the object that the delayed write changes. The key is empty if the
// object's name differs from run to run.
func (i *Injector) heldWrite() string {
	if i.fault.Call.Name == "" {
		return ""
	}
	return observe.NameKey(i.fault.Call.Resource, i.fault.Call.Namespace, i.fault.Call.Name)
}

// Pause suspends the leading operator process until another process has taken over. Then it lets
// the delayed write through and resumes the first process, which should notice that it has lost its
// lease, and exit.
func (i *RunInjector) Pause(ctx context.Context) error {
	first := i.Operator.Operator
	if err := first.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	i.Notes.Add("the operator is suspended")
	// Always kill the first process, because a suspended process cannot exit.
	defer first.Close()
	if err := i.Leadership.free(ctx); err != nil {
		return err
	}
	second := first.Another()
	second.Output = first.Output
	if err := second.Start(); err != nil {
		return err
	}
	i.Operator.Operator = second
	i.Notes.Add("another process is started")
	if !i.Leadership.await(ctx, i.base.Steps[0].Took+faults.Late) {
		i.Rules.Remove(faults.FaultRule)
		return ctx.Err()
	}
	i.Notes.Add("it leads")
	pass(ctx, 2*moment)
	i.Rules.Remove(faults.FaultRule)
	pass(ctx, moment)
	if err := first.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	i.Notes.Add("the delayed write has arrived, and the first process resumes")
	first.AwaitEnd(faults.Late)
	i.Settler.Act()
	return ctx.Err()
}

// CutOff closes all of the operator's connections until the operator's process exits, but no longer
// than faults.Late, which exceeds a lease duration.
func (i *Injector) CutOff(ctx context.Context) error {
	all := fault.Match{}
	if err := i.Rules.add(faults.AgainRule, all, fault.Count{}, fault.Fault{Kind: fault.Close}); err != nil {
		return err
	}
	i.Rules.Remove(faults.FaultRule)
	i.Rules.Proxy.Cut(all)
	ends := len(i.Operator.Ends())
	await(ctx, faults.Late, func() bool { return len(i.Operator.Ends()) != ends })
	i.Rules.Remove(faults.AgainRule)
	if err := i.Leadership.free(ctx); err != nil {
		return fmt.Errorf("after it was cut off: %w", err)
	}
	i.Notes.Add("connections last again")
	i.Settler.Act()
	return ctx.Err()
}

// await polls until the function `is` returns true, but no longer than the given time.
func await(ctx context.Context, most time.Duration, is func() bool) {
	for end := time.Now().Add(most); !is() && time.Now().Before(end) && ctx.Err() == nil; {
		pass(ctx, observe.Look)
	}
}

// pass waits for a duration, or until ctx is done.
func pass(ctx context.Context, while time.Duration) {
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
}
