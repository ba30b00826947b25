// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
)

// RuleSet has the active rules and their counters. Each rule counts all matching requests or events, even if
// an earlier rule matches them, too. If several rules are due, the oldest takes effect.
type RuleSet struct {
	mu    sync.Mutex
	rules []*entry
	// changed is closed and replaced whenever a counter or the list changes.
	changed chan struct{}
}

type entry struct {
	rule            Rule
	matched, fired  int
	resourceVersion string
	// when is nil for a rule without a condition.
	when    *condition.Condition
	removed chan struct{}
}

// RuleStatus is a rule with its counters.
type RuleStatus struct {
	Rule `json:",inline"`
	// Matched is the number of matching requests or events, and Fired the number of injected faults.
	Matched int `json:"matched"`
	Fired   int `json:"fired"`
}

// Unfired explains why the fault of a rule was never injected; empty if it was.
func (r *RuleStatus) Unfired() string {
	switch {
	case r.Fired > 0:
		return ""
	case r.Matched == 0:
		return fmt.Sprintf("rule %q matched nothing", r.Name)
	default:
		return fmt.Sprintf("rule %q matched %d and had no effect: see its count, and the rules before it", r.Name, r.Matched)
	}
}

// Action is a fault to inject now.
type Action struct {
	// Rule is the name of the rule.
	Rule  string
	Fault Fault
	// Removed is closed when the rule is removed.
	Removed <-chan struct{}
	// SetResourceVersion is not nil for the first read of a Stale rule without a resourceVersion. The caller
	// forwards that read, and calls SetResourceVersion with the version of the response.
	SetResourceVersion func(resourceVersion string)
}

// NewRuleSet returns a set without rules.
func NewRuleSet() *RuleSet { return &RuleSet{changed: make(chan struct{})} }

// Add adds valid rules. If a name is taken, or if no rule marks a moment that they refer to, it adds none.
func (s *RuleSet) Add(rules ...Rule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, rule := range rules {
		if s.index(rule.Name) >= 0 || slices.ContainsFunc(rules[:i], func(r Rule) bool { return r.Name == rule.Name }) {
			return fmt.Errorf("there is a rule named %q already: remove it first, or choose another name", rule.Name)
		}
	}
	added := make([]*entry, len(rules))
	for i, rule := range rules {
		e := &entry{rule: rule, resourceVersion: rule.Fault.ResourceVersion, removed: make(chan struct{})}
		if rule.When != "" {
			var err error
			if e.when, err = condition.Compile(rule.When); err != nil {
				return fmt.Errorf("rule %q: when: %w", rule.Name, err)
			}
		}
		added[i] = e
	}
	all := slices.Concat(s.rules, added)
	for _, rule := range rules {
		if of := rule.Fault.AsOf; of != "" && !slices.ContainsFunc(all, func(e *entry) bool { return e.rule.Name == of && e.rule.Fault.Kind == Mark }) {
			return fmt.Errorf("rule %q: fault.asOf: there is no rule %q with the fault Mark", rule.Name, of)
		}
	}
	s.rules = all
	s.notify()
	return nil
}

// Remove removes a rule, releases the requests and events that it holds back, and reports whether the rule
// existed.
func (s *RuleSet) Remove(name string) bool {
	return s.RemoveFunc(func(r Rule) bool { return r.Name == name }) > 0
}

// RemoveFunc removes the rules for which chosen returns true, and returns their number.
func (s *RuleSet) RemoveFunc(chosen func(Rule) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(e *entry) bool {
		if !chosen(e.rule) {
			return false
		}
		close(e.removed)
		return true
	})
	s.notify()
	return before - len(s.rules)
}

// List returns the rules in order, and a channel that is closed when the list or a counter changes.
func (s *RuleSet) List() ([]RuleStatus, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]RuleStatus, 0, len(s.rules))
	for _, e := range s.rules {
		list = append(list, RuleStatus{Rule: e.rule, Matched: e.matched, Fired: e.fired})
	}
	return list, s.changed
}

// Request counts a request and returns the fault to inject, nil for none.
func (s *RuleSet) Request(r Request) *Action {
	return s.first(func(e *entry) bool {
		of := e.rule.Fault.AsOf
		version := e.resourceVersion
		if of != "" {
			version = s.marked(of)
		}
		return !kinds[e.rule.Fault.Kind].events && e.rule.appliesTo(r) && e.holds(r.Change) && (of == "" || version != "") && (!e.rule.Fault.Cached || r.mayBeFromCache(version))
	})
}

// mayBeFromCache reports whether an API server may answer a request from a cache as of a resourceVersion; an
// unknown resourceVersion counts as the present.
func (r Request) mayBeFromCache(version string) bool {
	if !r.Cached {
		return false
	}
	asked, err := strconv.ParseUint(r.ResourceVersion, 10, 64)
	if err != nil {
		return false
	}
	cache, err := strconv.ParseUint(version, 10, 64)
	return version == "" || err == nil && asked <= cache
}

// marked returns the moment that a rule has marked, if any. The caller holds the lock.
func (s *RuleSet) marked(name string) string {
	if i := s.index(name); i >= 0 {
		return s.rules[i].resourceVersion
	}
	return ""
}

// NeedsChange reports whether a rule needs to know how a write, or the events of a watch, change objects.
func (s *RuleSet) NeedsChange(r Request) bool {
	return s.needs(r, func(*condition.Condition) bool { return true })
}

// NeedsOld reports whether a rule needs the previous version of the object of a write.
func (s *RuleSet) NeedsOld(r Request) bool {
	return s.needs(r, func(when *condition.Condition) bool { return when.Old })
}

func (s *RuleSet) needs(r Request, this func(*condition.Condition) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.rules, func(e *entry) bool { return e.when != nil && this(e.when) && e.rule.appliesTo(r) })
}

// Mark counts an event for the Mark rules, before other rules hold it back or change it, and returns the
// rules that mark it.
func (s *RuleSet) Mark(r Request, event Event) []*Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	var marks []*Action
	for _, e := range s.rules {
		if e.rule.Fault.Kind != Mark || event.ResourceVersion == "" || !e.rule.appliesTo(r) || !e.rule.Events.Matches(event) || !e.holds(event.Change) {
			continue
		}
		e.matched++
		s.notify()
		if e.resourceVersion == "" && e.rule.Count.includes(e.matched, e.fired) {
			e.resourceVersion = event.ResourceVersion
			e.fired++
			marks = append(marks, &Action{Rule: e.rule.Name, Fault: e.rule.Fault, Removed: e.removed})
		}
	}
	return marks
}

// holds reports whether a rule's condition is true.
func (e *entry) holds(change *Change) bool {
	if e.when == nil {
		return true
	}
	if change == nil {
		return false
	}
	is, _ := e.when.Holds(change.Object, change.Old)
	return is
}

// Freezes counts an event for the Freeze rules and returns the rules that hold it back. A rule that does not
// select events holds back everything, including bookmarks and the end of the stream.
func (s *RuleSet) Freezes(r Request, event Event) []*Action {
	return s.actions(func(e *entry) bool {
		rule := e.rule
		return rule.Fault.Kind == Freeze && rule.appliesTo(r) && e.holds(event.Change) && (rule.Events.Matches(event) || rule.Events.all() && (rule.Events.Initial || !event.Initial))
	}, -1)
}

// Event counts an event that is not held back and returns the fault to inject, nil for none.
func (s *RuleSet) Event(r Request, event Event) *Action {
	return s.first(func(e *entry) bool {
		kind := e.rule.Fault.Kind
		return kinds[kind].events && kind != Freeze && kind != Mark && e.rule.appliesTo(r) && e.rule.Events.Matches(event) && e.holds(event.Change)
	})
}

// appliesTo reports whether the rule applies to a request.
func (r Rule) appliesTo(request Request) bool {
	verbs := kinds[r.Fault.Kind].verbs
	return (verbs == nil || slices.Contains(verbs, request.Verb)) && r.Match.Matches(request)
}

func (s *RuleSet) first(applies func(*entry) bool) *Action {
	if actions := s.actions(applies, 1); len(actions) > 0 {
		return actions[0]
	}
	return nil
}

// actions counts for each rule that applies, and returns the due faults: at most limit, unless limit is
// negative.
func (s *RuleSet) actions(applies func(*entry) bool, limit int) []*Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	var actions []*Action
	for _, e := range s.rules {
		if !applies(e) {
			continue
		}
		e.matched++
		s.notify()
		if len(actions) == limit || !e.rule.Count.includes(e.matched, e.fired) {
			continue
		}
		action := &Action{Rule: e.rule.Name, Fault: e.rule.Fault, Removed: e.removed}
		action.Fault.ResourceVersion = e.resourceVersion
		if of := e.rule.Fault.AsOf; of != "" {
			action.Fault.ResourceVersion = s.marked(of)
		}
		if e.rule.Fault.Kind == Stale && action.Fault.ResourceVersion == "" {
			action.SetResourceVersion = func(resourceVersion string) { s.setResourceVersion(e, resourceVersion) }
		} else {
			e.fired++
		}
		actions = append(actions, action)
	}
	return actions
}

func (s *RuleSet) setResourceVersion(e *entry, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.resourceVersion == "" {
		e.resourceVersion = resourceVersion
	}
}

// Holds reports whether the next event of a watch would be held back, whatever it is.
func (s *RuleSet) Holds(r Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.rules, func(e *entry) bool {
		return e.rule.Fault.Kind == Freeze && e.when == nil && e.rule.Events.all() && e.rule.appliesTo(r) && e.rule.Count.includes(e.matched+1, e.fired)
	})
}

// includes reports whether the fault hits the n-th occurrence, after it has hit fired occurrences.
func (c Count) includes(n, fired int) bool {
	from, every := max(c.From, 1), max(c.Every, 1)
	return n >= from && (n-from)%every == 0 && (c.Times == 0 || fired < c.Times)
}

func (s *RuleSet) index(name string) int {
	return slices.IndexFunc(s.rules, func(e *entry) bool { return e.rule.Name == name })
}

// notify closes the channel that List returned. The caller holds the lock.
func (s *RuleSet) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
