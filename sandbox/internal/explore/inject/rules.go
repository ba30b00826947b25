// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// Names of the rules in the proxy.
const (
	FaultRule  = "explore"
	freezeRule = "explore-freeze"
	expireRule = "explore-expire"
	AgainRule  = "explore-again"
)

// OwnRules are the names of all rules that a run adds to its proxy.
var OwnRules = []string{FaultRule, freezeRule, expireRule, AgainRule}

// Rules are the rules of the proxy of a run.
type Rules struct{ Proxy *proxy.Server }

// add adds a rule to the proxy.
func (r Rules) add(name string, match fault.Match, count fault.Count, f fault.Fault) error {
	return r.Proxy.Rules().Add(fault.Rule{Name: name, Match: match, Count: count, Fault: f})
}

// Remove removes a rule, if it exists.
func (r Rules) Remove(name string) { r.Proxy.Rules().Remove(name) }

// List returns the rules of the proxy, with the number of times that each has fired.
func (r Rules) List() []fault.RuleStatus {
	list, _ := r.Proxy.Rules().List()
	return list
}

// fired reports whether a rule has fired.
func (r Rules) fired(name string) bool {
	return slices.ContainsFunc(r.List(), func(rule fault.RuleStatus) bool { return rule.Name == name && rule.Fired > 0 })
}

// expire makes the operator list a resource again, by answering its watches with 410 Expired.
// It also removes the rule of the fault, so that events after the list arrive.
func (r Rules) expire(ctx context.Context, resource string) error {
	match := fault.Match{Verbs: []string{"watch"}, Resources: []string{resource}}
	n := r.Proxy.Open(match)
	if n == 0 {
		return nil
	}
	err := r.add(expireRule, match, fault.Count{Times: n}, fault.Fault{Kind: fault.Error, Code: 410, Reason: "Expired"})
	if err != nil {
		return err
	}
	r.Proxy.Cut(match)
	r.Remove(FaultRule)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(observe.Look) {
		for _, rule := range r.List() {
			if rule.Name == expireRule && rule.Fired >= n {
				end = time.Now()
			}
		}
	}
	r.Remove(expireRule)
	return nil
}

// whenFired closes a channel when a rule has fired. It returns when the rule is removed, so
// that a fault that is not reached leaves no goroutine behind.
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
