// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// againRule is the name of a rule beside that of the fault.
const againRule = "explore-again"

// exceptElection are all resources but those by which leaders are elected.
var exceptElection = []string{"!" + election[0]}

// deaf is how long an operator at least does not hear of what another client wrote.
const deaf = 3 * time.Second

// moment gives an operator time to act on what it sees.
const moment = time.Second

// CrashTwice kills the operator, and the next process before its first write.
func (r *run) CrashTwice(ctx context.Context) error {
	if err := r.rule(againRule, fault.Match{Verbs: []string{"write"}, Resources: append(slices.Clone(exceptElection), "!events", "!events.events.k8s.io")}, fault.Count{Times: 1}, fault.Fault{Kind: fault.Hang}); err != nil {
		return err
	}
	if err := r.Crash(ctx); err != nil {
		return err
	}
	step := len(r.outcome.Steps)
	for end := time.Now().Add(r.baseline.Steps[0].Took + r.baseline.Steps[step].Took); !r.hasFired(againRule) && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(look)
	}
	again := r.hasFired(againRule)
	r.remove(againRule)
	if !again {
		r.outcome.Reached = false // Nothing was left to write.
		return ctx.Err()
	}
	return r.Crash(ctx)
}

func (r *run) hasFired(name string) bool {
	return slices.ContainsFunc(r.rules(), func(rule fault.RuleStatus) bool { return rule.Name == name && rule.Fired > 0 })
}

// KillComponent kills a component of the control plane while a write is on its way, and starts it
// again a moment later.
func (r *run) KillComponent(ctx context.Context, name string) error {
	r.recorder.expectBreaks()
	r.sandbox.spoilt = true
	if err := r.sandbox.dir.Control().Act(ctx, name, "kill"); err != nil {
		return err
	}
	r.note("%s is killed", name)
	r.remove(faultRule)
	r.restFor(ctx, moment)
	if err := r.sandbox.dir.Control().Act(ctx, name, "start"); err != nil {
		return err
	}
	if err := r.recorder.served(ctx); err != nil {
		return fmt.Errorf("after %s was killed: %w", name, err)
	}
	r.note("%s is there again", name)
	r.stepBegan = time.Now()
	return nil
}

// Overtake has another client write to the object of the write that is on its way, and to
// those that users made. The operator hears of it a moment after its own write has arrived.
func (r *run) Overtake(ctx context.Context) error {
	if err := r.rule(freezeRule, fault.Match{Resources: exceptElection}, fault.Count{}, fault.Fault{Kind: fault.Freeze}); err != nil {
		return err
	}
	held := r.heldWrite()
	for _, v := range r.recorder.objects() {
		if r.baseline.Roots[v.key()] || v.key() == held {
			if r.annotate(ctx, &v) {
				r.annotated = append(r.annotated, v)
			}
		}
	}
	// A fault in which no other client could write is none.
	r.outcome.Reached = len(r.annotated) > 0
	r.remove(faultRule)
	began, from := time.Now(), r.log.len()
	r.restFor(ctx, deaf)
	// On a slow machine it takes longer to see whether it tries again ever more seldom.
	for time.Since(began) < mostHeld && ctx.Err() == nil && undecided(r.log.since(from), r.baseline.Locks, time.Now()) {
		r.restFor(ctx, look)
	}
	r.remove(freezeRule)
	r.note("the events arrive")
	r.stepBegan = time.Now()
	return ctx.Err()
}

// touchedAnnotation is what touch writes.
const touchedAnnotation = "sandbox.tidekeeper.dev/touched"

// touch writes an annotation to each object that the operator watches and did not make, as
// any other client may at any time.
func (r *run) touch(ctx context.Context) {
	for _, v := range r.recorder.objects() {
		if r.baseline.Roots[v.key()] {
			r.annotate(ctx, &v)
		}
	}
}

// annotate writes an annotation as another client.
func (r *run) annotate(ctx context.Context, v *Version) bool {
	t := Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, touchedAnnotation, time.Now().Format(time.RFC3339))
	if err := r.patch(ctx, t, "", patch); err != nil {
		return false
	}
	if r.touched == nil {
		r.touched = map[string]bool{}
	}
	r.touched[v.key()] = true
	r.note("another client annotates %s", t)
	return true
}

// heldWrite is the key of the object of the write that the fault is about, empty if its name
// differs from run to run.
func (r *run) heldWrite() string {
	if r.fault.Call.Name == "" {
		return ""
	}
	return nameKey(r.fault.Call.Resource, r.fault.Call.Namespace, r.fault.Call.Name)
}

// lost returns what another client wrote, and is not there any more though its object is.
func (r *run) lost() []string {
	var lines []string
	for i := range r.annotated {
		if v := &r.annotated[i]; r.isLost(v) {
			lines = append(lines, v.key()+": what another client wrote to it is lost")
		}
	}
	return lines
}

// isLost reports whether an object is there, and an annotation is not that it had.
func (r *run) isLost(v *Version) bool {
	now := r.recorder.find(Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()})
	return now != nil && now.GetUID() == v.Object.GetUID() && now.GetAnnotations()[touchedAnnotation] == ""
}

// forgive forgets what was lost in a step in which users may have removed it: a command replaces what
// it likes, and a patch may be about annotations. What was lost before is the operator's doing.
func (r *run) forgive(step int, lostBefore []string) {
	if step == 0 || len(r.annotated) == 0 || r.fault == nil || step <= r.fault.Step || !r.Workload.Steps[step-1].mayRemoveAnnotations() {
		return
	}
	before := func(v *Version) bool {
		return slices.ContainsFunc(lostBefore, func(line string) bool { return strings.HasPrefix(line, v.key()+": ") })
	}
	r.annotated = slices.DeleteFunc(r.annotated, func(v Version) bool { return r.isLost(&v) && !before(&v) })
}

// mayRemoveAnnotations reports whether users may remove an annotation of another client in a step.
func (s *Step) mayRemoveAnnotations() bool {
	if s.Patch == nil {
		return s.Run != ""
	}
	merge, _ := s.Patch.Merge.(map[string]any)
	metadata, _ := merge["metadata"].(map[string]any)
	_, is := metadata["annotations"]
	return is
}

// restFor waits.
func (r *run) restFor(ctx context.Context, while time.Duration) {
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
}

// Pause suspends the operator, which leads, and another process takes over. Then the write
// that was on its way arrives, and the first process goes on, hears that it does not lead
// any more, and ends.
func (r *run) Pause(ctx context.Context) error {
	first := r.operator
	if err := first.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	r.note("the operator is suspended")
	// However this ends: it could not be asked to end while it is suspended.
	defer first.close()
	if err := r.freeLeases(ctx); err != nil {
		return err
	}
	second := first.another()
	second.output = first.output
	if err := second.start(); err != nil {
		return err
	}
	r.operator = second
	r.note("another process is started")
	if !r.awaitLeader(ctx, r.baseline.Steps[0].Took+faults.Late) {
		r.outcome.Reached = false
		r.remove(faultRule)
		return ctx.Err()
	}
	r.note("it leads")
	r.restFor(ctx, 2*moment)
	r.remove(faultRule)
	r.restFor(ctx, moment)
	if err := first.signal(syscall.SIGCONT); err != nil {
		return err
	}
	r.note("what was on its way has arrived, and the first process goes on")
	first.awaitEnd(faults.Late)
	r.stepBegan = time.Now()
	return ctx.Err()
}

// awaitLeader waits until a lease of the operator is held, and reports whether it is.
func (r *run) awaitLeader(ctx context.Context, limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(look) {
		for _, key := range r.electionLeases() {
			lease, err := r.recorder.client.Resource(leases).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if err != nil {
				continue
			}
			if holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); holder != "" {
				return true
			}
		}
	}
	return false
}

// CutOff breaks all connections of the operator until its process ends, or for longer than a
// lease lasts.
func (r *run) CutOff(ctx context.Context) error {
	all := fault.Match{}
	if err := r.rule(againRule, all, fault.Count{}, fault.Fault{Kind: fault.Close}); err != nil {
		return err
	}
	r.remove(faultRule)
	r.proxy.Cut(all)
	ends := len(r.operator.ends())
	for end := time.Now().Add(faults.Late); len(r.operator.ends()) == ends && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(look)
	}
	r.remove(againRule)
	if err := r.freeLeases(ctx); err != nil {
		return fmt.Errorf("after it was cut off: %w", err)
	}
	r.note("connections last again")
	r.stepBegan = time.Now()
	return ctx.Err()
}
