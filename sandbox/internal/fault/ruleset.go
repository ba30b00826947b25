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

// RuleSet holds the active rules and their counters. Each rule counts all matching requests or
// events, even if an earlier rule matches them, too. If several rules are due for the same request
// or event, the oldest rule takes effect.
type RuleSet struct {
	mu    sync.Mutex
	rules []*entry
	// changed is closed and replaced whenever a counter or the set of rules changes.
	changed chan struct{}
}

type entry struct {
	rule            Rule
	matched, fired  int
	resourceVersion string
	// when is the compiled condition of the rule, or nil if the rule has no condition.
	when    *condition.Condition
	removed chan struct{}
}

// RuleStatus is a rule with its counters.
type RuleStatus struct {
	Rule `json:",inline"`
	// Matched counts the matching requests or events. Fired counts the injected faults.
	Matched int `json:"matched"`
	Fired   int `json:"fired"`
}

// Unfired explains why a rule has injected no fault yet. It returns "" if the rule has injected a
// fault.
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

// Action is a fault to inject into a request or an event.
type Action struct {
	// Rule is the name of the rule that injects the fault.
	Rule  string
	Fault Fault
	// Removed is closed when the rule is removed, which ends the waits of faults such as Hang,
	// Delay and Freeze.
	Removed <-chan struct{}
	// SetResourceVersion is set for the first read that hits a Stale rule without a
	// resourceVersion. The caller must forward this read, and pass the response's resourceVersion
	// to SetResourceVersion.
	SetResourceVersion func(resourceVersion string)
}

// NewRuleSet returns an empty RuleSet.
func NewRuleSet() *RuleSet { return &RuleSet{changed: make(chan struct{})} }

// Add adds rules, which must be valid. It adds no rule if a name is already in use, or if
// fault.asOf does not name an existing Mark rule.
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

// Remove removes a rule, releases the requests and events held back by it, and reports whether the
// rule existed.
func (s *RuleSet) Remove(name string) bool {
	return s.RemoveFunc(func(r Rule) bool { return r.Name == name }) > 0
}

// RemoveFunc removes the rules for which `chosen` returns true, and returns the number of removed
// rules.
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

// List returns the rules, oldest first, and a channel that is closed when a rule is added or
// removed, or when a counter changes.
func (s *RuleSet) List() ([]RuleStatus, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]RuleStatus, 0, len(s.rules))
	for _, e := range s.rules {
		list = append(list, RuleStatus{Rule: e.rule, Matched: e.matched, Fired: e.fired})
	}
	return list, s.changed
}

// Request counts a request for the rules that match it, and returns the fault to inject, or nil for
// none.
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

// mayBeFromCache reports whether an API server may answer a request from a cache at the given
// resourceVersion. An empty version means that the cache is current.
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

// marked returns the resourceVersion recorded by the named Mark rule, or "". The caller must hold
// s.mu.
func (s *RuleSet) marked(name string) string {
	if i := s.index(name); i >= 0 {
		return s.rules[i].resourceVersion
	}
	return ""
}

// NeedsChange reports whether the condition of any rule applies to the request. If it returns true,
// the caller must set the field Change of the request or, for a watch, of its events.
func (s *RuleSet) NeedsChange(r Request) bool {
	return s.needs(r, func(*condition.Condition) bool { return true })
}

// NeedsOld reports whether the condition of any rule uses the previous version of the object
// written by the request.
func (s *RuleSet) NeedsOld(r Request) bool {
	return s.needs(r, func(when *condition.Condition) bool { return when.Old })
}

func (s *RuleSet) needs(r Request, this func(*condition.Condition) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.rules, func(e *entry) bool { return e.when != nil && this(e.when) && e.rule.appliesTo(r) })
}

// Mark counts an event for the Mark rules, and returns an action for each rule that records the
// event. Mark must be called before Freezes and Event, whose rules may delay or drop the event.
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

// holds reports whether the rule's condition is true for a change. It returns true for a rule
// without a condition.
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

// Freezes counts an event for the Freeze rules, and returns an action for each rule that holds the
// event back. A rule that does not select specific events holds back everything, including
// bookmarks and the end of the stream.
func (s *RuleSet) Freezes(r Request, event Event) []*Action {
	return s.actions(func(e *entry) bool {
		rule := e.rule
		return rule.Fault.Kind == Freeze && rule.appliesTo(r) && e.holds(event.Change) && (rule.Events.Matches(event) || rule.Events.all() && (rule.Events.Initial || !event.Initial))
	}, -1)
}

// Event counts an event that is not held back by a Freeze rule, and returns the fault to inject, or
// nil for none.
func (s *RuleSet) Event(r Request, event Event) *Action {
	return s.first(func(e *entry) bool {
		kind := e.rule.Fault.Kind
		return kinds[kind].events && kind != Freeze && kind != Mark && e.rule.appliesTo(r) && e.rule.Events.Matches(event) && e.holds(event.Change)
	})
}

// appliesTo reports whether the rule matches the request, and the rule's fault can hit the
// request's verb.
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

// actions increments the counter of each rule that applies to a request or event, and returns the
// faults to inject, at most `limit` of them. A negative limit means unlimited.
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

// Holds reports whether a Freeze rule would hold back a watch's next event, regardless of the
// event's type and object.
func (s *RuleSet) Holds(r Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.rules, func(e *entry) bool {
		return e.rule.Fault.Kind == Freeze && e.when == nil && e.rule.Events.all() && e.rule.appliesTo(r) && e.rule.Count.includes(e.matched+1, e.fired)
	})
}

// includes reports whether the fault hits the n-th matching request or event. `fired` is the number
// of faults that the rule has already injected.
func (c Count) includes(n, fired int) bool {
	from, every := max(c.From, 1), max(c.Every, 1)
	return n >= from && (n-from)%every == 0 && (c.Times == 0 || fired < c.Times)
}

func (s *RuleSet) index(name string) int {
	return slices.IndexFunc(s.rules, func(e *entry) bool { return e.rule.Name == name })
}

// notify closes and replaces the channel returned by List. The caller must hold s.mu.
func (s *RuleSet) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
