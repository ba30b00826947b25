// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/application"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// OwnRules lists the names of all proxy rules that a run may add.
var OwnRules = []string{faults.FaultRule, faults.FreezeRule, faults.ExpireRule, faults.AgainRule}

// Rules manages the rules of a run's fault proxy, and the fault of its applications, if it has any. A
// rule selects requests or watch events and injects a fault into them.
type Rules struct {
	Proxy        *proxy.Server
	Applications *application.Applications
}

// add adds a rule to the run's proxy. The rule's name must be unique.
func (r Rules) add(name string, match fault.Match, count fault.Count, f fault.Fault) error {
	return r.Proxy.Rules().Add(fault.Rule{Name: name, Match: match, Count: count, Fault: f})
}

// Remove removes a rule from the proxy, if it exists, or the fault of an application.
func (r Rules) Remove(name string) {
	r.Proxy.Rules().Remove(name)
	if name == faults.FaultRule {
		r.Applications.Release()
	}
}

// List returns the proxy's rules. Each rule contains the number of requests and events that it has
// hit.
func (r Rules) List() []fault.RuleStatus {
	list, _ := r.Proxy.Rules().List()
	return list
}

// fired reports whether the named rule has hit a request or event.
func (r Rules) fired(name string) bool {
	return slices.ContainsFunc(r.List(), func(rule fault.RuleStatus) bool { return rule.Name == name && rule.Fired > 0 })
}

// expire closes the operator's watches of a resource, and answers the requests that reopen them
// with 410 Expired. The operator must then list the resource again. expire also removes the fault's
// rule, so that later events reach the operator. It does nothing if the operator has no open watch.
func (r Rules) expire(ctx context.Context, resource string) error {
	match := fault.Match{Verbs: []string{"watch"}, Resources: []string{resource}}
	n := r.Proxy.Open(match)
	if n == 0 {
		return nil
	}
	err := r.add(faults.ExpireRule, match, fault.Count{Times: n}, fault.Fault{Kind: fault.Error, Code: 410, Reason: "Expired"})
	if err != nil {
		return err
	}
	r.Proxy.Cut(match)
	r.Remove(faults.FaultRule)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(observe.Look) {
		for _, rule := range r.List() {
			if rule.Name == faults.ExpireRule && rule.Fired >= n {
				end = time.Now()
			}
		}
	}
	r.Remove(faults.ExpireRule)
	return nil
}

// whenFired closes the channel `fired` when the named rule hits a request or event for the first
// time. It returns early if the rule is removed, so that no goroutine remains.
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
