// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"
)

// ruleSet returns a RuleSet with the rules of a scenario file's content.
func ruleSet(t *testing.T, scenario string) *RuleSet {
	t.Helper()
	rules, err := Parse([]byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	b := NewRuleSet()
	if err := b.Add(rules...); err != nil {
		t.Fatal(err)
	}
	return b
}

// done sends `count` equal requests. For each request, it returns the name of the rule that fired,
// which must be a character, or ".".
func done(b *RuleSet, count int, r Request) string {
	var text strings.Builder
	for range count {
		if action := b.Request(r); action == nil {
			text.WriteByte('.')
		} else {
			text.WriteString(action.Rule)
		}
	}
	return text.String()
}

func TestCounting(t *testing.T) {
	for name, tc := range map[string]struct{ scenario, want string }{
		"each":                       {"rules: [{name: a, fault: {kind: Close}}]", "aaaaaaaa"},
		"the third":                  {"rules: [{name: a, count: {from: 3, times: 1}, fault: {kind: Close}}]", "..a....."},
		"from the third on":          {"rules: [{name: a, count: {from: 3}, fault: {kind: Close}}]", "..aaaaaa"},
		"every third":                {"rules: [{name: a, count: {from: 2, every: 3}, fault: {kind: Close}}]", ".a..a..a"},
		"two of them":                {"rules: [{name: a, count: {every: 3, times: 2}, fault: {kind: Close}}]", "a..a...."},
		"the first rule wins":        {"rules: [{name: a, count: {from: 2, every: 2}, fault: {kind: Close}}, {name: b, fault: {kind: Hang}}]", "babababa"},
		"and the other's turn comes": {"rules: [{name: a, count: {from: 2, times: 1}, fault: {kind: Close}}, {name: b, count: {from: 2, times: 1}, fault: {kind: Hang}}]", ".ab....."},
		"what is not meant":          {"rules: [{name: a, match: {verbs: [get]}, fault: {kind: Close}}]", "........"},
		"what cannot be done":        {"rules: [{name: a, fault: {kind: Freeze}}, {name: b, fault: {kind: Stale}}]", "........"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := done(ruleSet(t, tc.scenario), 8, request("patch", "nodes", "", "n")); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestStaleLearnsFromTheFirst(t *testing.T) {
	b := ruleSet(t, "rules: [{name: a, fault: {kind: Stale}}]")
	get := request("get", "nodes", "", "n")
	first := b.Request(get)
	if first == nil || first.SetResourceVersion == nil {
		t.Fatalf("the first read: %+v", first)
	}
	first.SetResourceVersion("42")
	first.SetResourceVersion("43") // A concurrent read may report its version later, which is ignored.
	second := b.Request(get)
	if second == nil || second.SetResourceVersion != nil || second.Fault.ResourceVersion != "42" {
		t.Errorf("the second read: %+v", second)
	}
	if rules, _ := b.List(); rules[0].Matched != 2 || rules[0].Fired != 1 {
		t.Errorf("counted: %+v", rules)
	}
}

func TestFreezeHoldsTheEndBackToo(t *testing.T) {
	b := ruleSet(t, "rules: [{name: any, fault: {kind: Freeze}}, {name: some, events: {names: [n]}, fault: {kind: Freeze}}]")
	watch := request("watch", "nodes", "", "")
	for _, tc := range []struct {
		event Event
		want  int
	}{
		{Event{}, 1}, {Event{Type: "BOOKMARK"}, 1}, {Event{Type: "ADDED", Name: "n"}, 2}, {Event{Type: "ADDED", Name: "n", Initial: true}, 0},
	} {
		if got := b.Freezes(watch, tc.event); len(got) != tc.want {
			t.Errorf("%+v is held back by %d rules, want %d", tc.event, len(got), tc.want)
		}
	}
	held := b.Freezes(watch, Event{Type: "ADDED"})[0].Removed
	if !b.Remove("any") {
		t.Fatal("there was a rule")
	}
	select {
	case <-held:
	default:
		t.Error("a rule that is removed lets go")
	}
}

// TestHolds checks that Holds reports a Freeze of all events even before the first event arrives.
func TestHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario string
		want     bool
	}{
		"all events":      {"rules: [{fault: {kind: Freeze}}]", true},
		"some events":     {"rules: [{events: {names: [n]}, fault: {kind: Freeze}}]", false},
		"other resources": {"rules: [{match: {resources: [pods]}, fault: {kind: Freeze}}]", false},
		"later":           {"rules: [{count: {from: 2}, fault: {kind: Freeze}}]", false},
		"not a freeze":    {"rules: [{fault: {kind: DropEvent}}]", false},
	} {
		if got := ruleSet(t, tc.scenario).Holds(request("watch", "nodes", "", "")); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// event returns a MODIFIED event of an object with the given size. `before` is the size in the
// previous version; 0 means that there is no previous version.
func event(version string, size, before int64) Event {
	e := Event{Type: "MODIFIED", Name: "a", ResourceVersion: version, Change: &Change{Object: map[string]any{"size": size}}}
	if before > 0 {
		e.Change.Old = map[string]any{"size": before}
	}
	return e
}

// TestWhen checks that a rule with a condition applies only to events for which the condition is
// true.
func TestWhen(t *testing.T) {
	b := ruleSet(t, "rules: [{name: a, when: 'old != null && object.size < old.size', fault: {kind: DropEvent}}, {name: f, when: object.size == 9, fault: {kind: Freeze}}]")
	watch := request("watch", "claims", "", "")
	if !b.NeedsChange(watch) || b.NeedsChange(request("get", "claims", "", "a")) {
		t.Error("the objects of watches are needed, and no others")
	}
	if b.Holds(watch) {
		t.Error("a Freeze with a condition does not hold what is not known")
	}
	for _, tc := range []struct {
		name           string
		event          Event
		dropped, holds bool
	}{
		{name: "it shrinks", event: event("1", 3, 5), dropped: true},
		{name: "it grows", event: event("1", 5, 3)},
		{name: "it was not seen before", event: event("1", 3, 0)},
		{name: "it is not known", event: Event{Type: "MODIFIED", Name: "a"}},
		{name: "it is held back", event: event("1", 9, 3), holds: true},
	} {
		if action := b.Event(watch, tc.event); (action != nil) != tc.dropped {
			t.Errorf("%s: the fault is %+v", tc.name, action)
		}
		if held := b.Freezes(watch, tc.event); (len(held) > 0) != tc.holds {
			t.Errorf("%s: it is held back by %d", tc.name, len(held))
		}
	}
}

// TestWhenOfWrites checks that a rule with a condition applies only to writes for which the
// condition is true.
func TestWhenOfWrites(t *testing.T) {
	b := ruleSet(t, "rules: [{name: a, when: 'object != null && old != null && object.size < old.size', fault: {kind: Close}}, {name: b, match: {resources: [boats]}, when: object == null, fault: {kind: Close}}]")
	update, get, other := request("update", "claims", "", "a"), request("get", "claims", "", "a"), request("delete", "boats", "", "a")
	if !b.NeedsChange(update) || !b.NeedsOld(update) || !b.NeedsChange(other) {
		t.Error("the objects of writes are needed")
	}
	if none := ruleSet(t, "rules: [{when: object == null, fault: {kind: Close}}]"); none.NeedsOld(other) {
		t.Error("what the object was before is not asked for")
	}
	for _, tc := range []struct {
		name    string
		request Request
		change  *Change
		want    string
	}{
		{name: "it shrinks", request: update, change: event("", 3, 5).Change, want: "a"},
		{name: "it grows", request: update, change: event("", 5, 3).Change, want: "."},
		{name: "it is new", request: update, change: event("", 3, 0).Change, want: "."},
		{name: "it is not known", request: update, want: "."},
		{name: "a deletion", request: other, change: &Change{}, want: "b"},
		{name: "a read", request: get, want: "."},
	} {
		tc.request.Change = tc.change
		if got := done(b, 1, tc.request); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestAsOf checks that a Stale rule with asOf answers reads as of the marked event, and has no
// effect before an event is marked.
func TestAsOf(t *testing.T) {
	b := ruleSet(t, "rules: [{name: moment, count: {from: 2}, when: object.size == 5, fault: {kind: Mark}}, {name: stale, fault: {kind: Stale, asOf: moment}}]")
	watch, list := request("watch", "claims", "", ""), request("list", "claims", "", "")
	for _, tc := range []struct {
		event Event
		marks int
		asOf  string
	}{
		{event: event("7", 5, 0)},
		{event: event("8", 4, 5)},
		{event: event("9", 5, 4), marks: 1, asOf: "9"},
		{event: event("10", 5, 5), asOf: "9"},
	} {
		if marks := b.Mark(watch, tc.event); len(marks) != tc.marks {
			t.Errorf("%s marks %d moments, want %d", tc.event.ResourceVersion, len(marks), tc.marks)
		}
		if b.Event(watch, tc.event) != nil {
			t.Error("a Mark does nothing to the event")
		}
		action := b.Request(list)
		switch {
		case tc.asOf == "" && action != nil:
			t.Errorf("before the moment: %+v", action)
		case tc.asOf != "" && (action == nil || action.Fault.ResourceVersion != tc.asOf || action.SetResourceVersion != nil):
			t.Errorf("after the moment: %+v, want as of %s", action, tc.asOf)
		}
	}
	other, err := Parse([]byte("rules: [{name: other, fault: {kind: Stale, asOf: stale}}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add(other...); err == nil || !strings.Contains(err.Error(), `rule "other": fault.asOf: there is no rule "stale" with the fault Mark`) {
		t.Errorf("a moment that nothing marks: %v", err)
	}
}
