// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// Names of the rules in the proxy.
const (
	faultRule  = "explore"
	freezeRule = "explore-freeze"
	expireRule = "explore-expire"
	againRule  = "explore-again"
)

// rules are the rules of the proxy of a run.
type rules struct{ proxy *proxy.Server }

// add adds a rule.
func (r rules) add(name string, match fault.Match, count fault.Count, f fault.Fault) error {
	return r.proxy.Rules().Add(fault.Rule{Name: name, Match: match, Count: count, Fault: f})
}

// remove removes a rule, if it exists.
func (r rules) remove(name string) { r.proxy.Rules().Remove(name) }

func (r rules) list() []fault.RuleStatus {
	list, _ := r.proxy.Rules().List()
	return list
}

// fired reports whether a rule has fired.
func (r rules) fired(name string) bool {
	return slices.ContainsFunc(r.list(), func(rule fault.RuleStatus) bool { return rule.Name == name && rule.Fired > 0 })
}

// expire has the operator list a resource again, as when its watch has expired. The fault is over
// with that: events after the list arrive.
func (r rules) expire(ctx context.Context, resource string) error {
	match := fault.Match{Verbs: []string{"watch"}, Resources: []string{resource}}
	n := r.proxy.Open(match)
	if n == 0 {
		return nil
	}
	err := r.add(expireRule, match, fault.Count{Times: n}, fault.Fault{Kind: fault.Error, Code: 410, Reason: "Expired"})
	if err != nil {
		return err
	}
	r.proxy.Cut(match)
	r.remove(faultRule)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(look) {
		for _, rule := range r.list() {
			if rule.Name == expireRule && rule.Fired >= n {
				end = time.Now()
			}
		}
	}
	r.remove(expireRule)
	return nil
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
