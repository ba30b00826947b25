// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"slices"
	"sync"
)

// Book holds the rules in force and counts what each of them meant. Every rule
// counts all that it means, whether or not another rule comes before it; of
// those that are due, the first in the order in which they were added is done.
type Book struct {
	mu    sync.Mutex
	rules []*entry
	// changed is closed, and made anew, whenever a counter or the list changes.
	changed chan struct{}
}

type entry struct {
	rule            Rule
	matched, fired  int
	resourceVersion string
	removed         chan struct{}
}

// Counted is a rule with its counters.
type Counted struct {
	Rule `json:",inline"`
	// Matched is how many requests or events the rule meant, Fired to how many
	// of them the fault was done.
	Matched int `json:"matched"`
	Fired   int `json:"fired"`
}

// Due is a rule whose fault is to be done now.
type Due struct {
	Name  string
	Fault Fault
	// Removed is closed when the rule is.
	Removed <-chan struct{}
	// Learn is set instead of doing a Stale fault whose world is not known yet:
	// it is to be called with the resourceVersion of the answer.
	Learn func(resourceVersion string)
}

// NewBook returns a book without rules.
func NewBook() *Book { return &Book{changed: make(chan struct{})} }

// Add adds rules that Validate has nothing against, or none of them if the name
// of one is taken.
func (b *Book) Add(rules ...Rule) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, rule := range rules {
		if b.index(rule.Name) >= 0 || slices.ContainsFunc(rules[:i], func(r Rule) bool { return r.Name == rule.Name }) {
			return fmt.Errorf("there is a rule named %q already: remove it first, or name this one otherwise", rule.Name)
		}
	}
	for _, rule := range rules {
		b.rules = append(b.rules, &entry{rule: rule, resourceVersion: rule.Fault.ResourceVersion, removed: make(chan struct{})})
	}
	b.tell()
	return nil
}

// Remove removes the rule of that name and lets go what it holds. It says
// whether there was one.
func (b *Book) Remove(name string) bool {
	return b.RemoveFunc(func(r Rule) bool { return r.Name == name }) > 0
}

// RemoveFunc removes the rules that are chosen and returns how many those were.
func (b *Book) RemoveFunc(chosen func(Rule) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.rules)
	b.rules = slices.DeleteFunc(b.rules, func(e *entry) bool {
		if !chosen(e.rule) {
			return false
		}
		close(e.removed)
		return true
	})
	b.tell()
	return before - len(b.rules)
}

// List returns the rules in their order, and a channel that is closed as soon
// as that is out of date.
func (b *Book) List() ([]Counted, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Counted, 0, len(b.rules))
	for _, e := range b.rules {
		list = append(list, Counted{Rule: e.rule, Matched: e.matched, Fired: e.fired})
	}
	return list, b.changed
}

// Request counts a request and returns what is to be done to it, nil for
// nothing.
func (b *Book) Request(r Request) *Due {
	return b.first(func(rule Rule) bool { return !kinds[rule.Fault.Kind].events && rule.means(r) })
}

// Freezes counts an event for the rules that hold it back and returns those
// that do. A rule that chooses no events holds back everything, bookmarks and
// the end of the stream too.
func (b *Book) Freezes(r Request, event Event) []*Due {
	return b.due(func(rule Rule) bool {
		return rule.Fault.Kind == Freeze && rule.means(r) && (rule.Events.Matches(event) || rule.Events.all() && (rule.Events.Initial || !event.Initial))
	}, -1)
}

// Event counts an event that nothing holds back any more and returns what is to
// be done to it, nil for nothing.
func (b *Book) Event(r Request, event Event) *Due {
	return b.first(func(rule Rule) bool {
		return kinds[rule.Fault.Kind].events && rule.Fault.Kind != Freeze && rule.means(r) && rule.Events.Matches(event)
	})
}

// means tells whether the request is one that the rule means.
func (r Rule) means(request Request) bool {
	verbs := kinds[r.Fault.Kind].verbs
	return (verbs == nil || slices.Contains(verbs, request.Verb)) && r.Match.Matches(request)
}

func (b *Book) first(meant func(Rule) bool) *Due {
	if due := b.due(meant, 1); len(due) > 0 {
		return due[0]
	}
	return nil
}

// due counts for each rule that is meant, and takes those that are due, at most
// as many as the limit if it is not negative.
func (b *Book) due(meant func(Rule) bool, limit int) []*Due {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []*Due
	for _, e := range b.rules {
		if !meant(e.rule) {
			continue
		}
		e.matched++
		b.tell()
		if len(due) == limit || !e.rule.Count.due(e.matched, e.fired) {
			continue
		}
		d := &Due{Name: e.rule.Name, Fault: e.rule.Fault, Removed: e.removed}
		d.Fault.ResourceVersion = e.resourceVersion
		if e.rule.Fault.Kind == Stale && e.resourceVersion == "" {
			d.Learn = func(resourceVersion string) { b.learn(e, resourceVersion) }
		} else {
			e.fired++
		}
		due = append(due, d)
	}
	return due
}

func (b *Book) learn(e *entry, resourceVersion string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.resourceVersion == "" {
		e.resourceVersion = resourceVersion
	}
}

// due tells whether the count-th is one to do the fault to, when it was done
// so many times before.
func (c Count) due(count, fired int) bool {
	from, every := max(c.From, 1), max(c.Every, 1)
	return count >= from && (count-from)%every == 0 && (c.Times == 0 || fired < c.Times)
}

func (b *Book) index(name string) int {
	return slices.IndexFunc(b.rules, func(e *entry) bool { return e.rule.Name == name })
}

func (b *Book) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}
