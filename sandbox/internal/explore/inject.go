// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Names of the rules in the proxy.
const (
	faultRule  = "explore"
	freezeRule = "explore-freeze"
	expireRule = "explore-expire"
)

// arm adds the rule of the fault, at the beginning of its step. The channel is closed when
// it was injected for the first time; it is nil for faults that come after the step.
func (r *run) arm(ctx context.Context) (<-chan struct{}, error) {
	f := r.fault
	entry := f.entry()
	match, count := fault.Match{}, fault.Count{}
	switch {
	case entry.Hits == faults.Start:
		return nil, nil
	case entry.Hits == faults.Write && f.Call != nil:
		match = fault.Match{Verbs: []string{f.Call.Verb}, Resources: []string{f.Call.Resource}}
		if f.Call.Name != "" {
			match.Names = []string{f.Call.Name}
		}
		if f.Call.Namespace != "" {
			match.Namespaces = []string{f.Call.Namespace}
		}
		count = fault.Count{From: f.Nth, Times: 1}
	case (entry.Hits == faults.Event || entry.Hits == faults.Events) && f.Resource != "":
		match = fault.Match{Verbs: []string{"watch"}, Resources: []string{f.Resource}}
		if !f.effects().Lasts {
			count = fault.Count{From: max(f.Nth, 1), Times: 1}
		}
	default:
		return nil, fmt.Errorf("the fault %q needs a call or a resource", f.Kind)
	}
	if err := r.rule(faultRule, match, count, entry.Rule); err != nil {
		return nil, err
	}
	if f.effects().Lasts {
		r.note(results.Fault+"%s: %s", f.Resource, f.entry().Text)
	}
	fired := make(chan struct{})
	go whenFired(ctx, r.proxy.Rules(), faultRule, fired)
	return fired, nil
}

// whenFired closes a channel when a rule has fired. It waits no longer than there is the rule, so
// that a fault that is not reached leaves nothing behind.
func whenFired(ctx context.Context, rules *fault.RuleSet, name string, fired chan<- struct{}) {
	for {
		all, changed := rules.List()
		i := slices.IndexFunc(all, func(rule fault.RuleStatus) bool { return rule.Name == name })
		switch {
		case i < 0:
			return
		case all[i].Fired > 0:
			close(fired)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// inject does what belongs to the fault beside its rule, while users do what the step does, and
// after that is done.
func (r *run) inject(ctx context.Context, step int, injected, done <-chan struct{}) error {
	f := r.fault
	switch {
	case f == nil:
		return nil
	case f.effects().Lasts:
		if step == f.Until {
			return r.thaw(ctx)
		}
		return nil
	case f.Step != step:
		return nil
	case f.entry().Hits == faults.Start:
		r.rest(ctx, step, r.baseline.Steps[step].Took+r.Patience)
		return f.entry().Act(r, ctx)
	}
	calm := time.Duration(0)
	if step > 0 {
		calm = r.baseline.Steps[step].Quiet
	}
	return r.strike(ctx, injected, done, r.baseline.Steps[step].Took+2*r.baseline.Quiet+3*time.Second, calm)
}

// strike waits until the fault was injected, as reaches does, and does what belongs to it.
func (r *run) strike(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) error {
	f := r.fault
	if !r.reaches(ctx, injected, done, limit, calm) {
		r.remove(faultRule)
		return ctx.Err()
	}
	r.outcome.Reached = true
	r.note(results.Fault+"%s: %s", f.subject(), f.entry().Text)
	if act := f.entry().Act; act != nil {
		return act(r, ctx)
	}
	return nil
}

// ListAgain has the operator list the resource again when the step has come to rest.
func (r *run) ListAgain(ctx context.Context) error {
	step := len(r.outcome.Steps)
	r.rest(ctx, step, r.baseline.Steps[step].Took+2*r.baseline.Quiet)
	if err := r.listAgain(ctx); err != nil {
		return err
	}
	r.note("all is listed")
	r.stepBegan = time.Now()
	return nil
}

// reaches waits until the fault was injected, and reports whether that came: within the
// limit after what users do is done, and not after nothing has happened for long. All is calm when
// nothing happens for that time undisturbed; 0 is while the operator starts, when that says nothing.
func (r *run) reaches(ctx context.Context, injected, done <-chan struct{}, limit, calm time.Duration) bool {
	select {
	case <-injected:
		return true
	case <-done:
	case <-ctx.Done():
		return false
	}
	over := time.After(limit)
	for {
		select {
		case <-injected:
			return true
		case <-time.After(look):
			if calm > 0 && r.quietFor() > max(2*calm, 3*shortQuiet) {
				return false
			}
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Crash kills the operator and starts it again at once, as if the lease of a dead leader
// had expired.
func (r *run) Crash(ctx context.Context) error {
	r.operator.kill()
	r.note("the operator is killed")
	r.remove(faultRule)
	if err := r.freeLeases(ctx); err != nil {
		return err
	}
	if err := r.operator.start(); err != nil {
		return err
	}
	r.note("the operator is started again")
	r.stepBegan = time.Now()
	return nil
}

// thaw ends that events are held back, after the step has come to rest without them.
func (r *run) thaw(ctx context.Context) error {
	f := r.fault
	r.rest(ctx, f.Until, r.baseline.Steps[f.Until].Took+2*r.baseline.Quiet)
	if f.effects().Holds {
		r.note("nothing is done for %s", r.Hold)
		select {
		case <-time.After(r.Hold):
		case <-ctx.Done():
			return ctx.Err()
		}
		r.touch(ctx)
		r.rest(ctx, f.Until, 2*r.baseline.Quiet+5*time.Second)
	}
	for _, rule := range r.rules() {
		if rule.Name == faultRule {
			r.outcome.Reached = rule.Fired > 0
		}
	}
	if f.effects().ListsAfter {
		if err := r.listAgain(ctx); err != nil {
			return err
		}
	}
	r.remove(faultRule)
	r.note("the events arrive")
	r.stepBegan = time.Now()
	return nil
}

func (r *run) rules() []fault.RuleStatus {
	rules, _ := r.proxy.Rules().List()
	return rules
}

// listAgain has the operator list the resource again, as when a watch has expired.
func (r *run) listAgain(ctx context.Context) error {
	match := fault.Match{Verbs: []string{"watch"}, Resources: []string{r.fault.Resource}}
	n := r.proxy.Open(match)
	if n == 0 {
		return nil
	}
	err := r.rule(expireRule, match, fault.Count{Times: n}, fault.Fault{Kind: fault.Error, Code: 410, Reason: "Expired"})
	if err != nil {
		return err
	}
	r.proxy.Cut(match)
	// What comes after the list is not dropped any more.
	r.remove(faultRule)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(look) {
		for _, rule := range r.rules() {
			if rule.Name == expireRule && rule.Fired >= n {
				end = time.Now()
			}
		}
	}
	r.remove(expireRule)
	return nil
}
