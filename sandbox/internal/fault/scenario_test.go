// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct{ scenario, want string }{
		"empty":              {"", "line 1: there are no rules"},
		"no rules":           {"rules: []", "line 1: there are no rules"},
		"not YAML":           {"rules:\n\t- a", "line 2: found character that cannot start any token"},
		"a list":             {"- a", "line 1: cannot unmarshal"},
		"unknown":            {"rule: []", `line 1: a scenario has no field "rule"`},
		"unknown deep down":  {"rules:\n- fault:\n    kind: Error\n    status: 500", `line 4: a fault has no field "status"`},
		"twice":              {"rules:\n- name: a\n  name: b", `line 3: mapping key "name" already defined at line 2`},
		"two documents":      {"rules: [{fault: {kind: Close}}]\n---\nrules: []", "more than one YAML document"},
		"no fault":           {"rules:\n- name: a", `line 2: rule "a": fault.kind ""`},
		"the second rule":    {"rules:\n- fault: {kind: Close}\n\n- fault: {kind: close}", `line 4: rule "rule-2": fault.kind "close"`},
		"name":               {"rules: [{name: A b, fault: {kind: Close}}]", "cannot be a name"},
		"same name":          {"rules:\n- {name: a, fault: {kind: Close}}\n- {name: a, fault: {kind: Close}}", `line 3: rule "a": another rule has that name`},
		"verb":               {"rules: [{match: {verbs: [PATCH]}, fault: {kind: Close}}]", `match.verbs "PATCH": want one of get,`},
		"verb of the kind":   {"rules: [{match: {verbs: [get]}, fault: {kind: Freeze}}]", `match.verbs "get": Freeze is done only to watch, watchlist`},
		"answer of a watch":  {"rules: [{match: {verbs: [watch]}, fault: {kind: LoseAnswer}}]", "LoseAnswer is done only to get,"},
		"resource":           {"rules: [{match: {resources: [Nodes]}, fault: {kind: Close}}]", `match.resources "Nodes"`},
		"subresource":        {"rules: [{match: {resources: [pods/]}, fault: {kind: Close}}]", `match.resources "pods/"`},
		"no name":            {`rules: [{match: {names: [""]}, fault: {kind: Close}}]`, `match.names: "" matches nothing`},
		"path and resource":  {"rules: [{match: {paths: [/a], names: [b]}, fault: {kind: Close}}]", "leave resources, namespaces and names out"},
		"path of an event":   {"rules: [{match: {paths: [/a]}, fault: {kind: Freeze}}]", "match.paths: Freeze is done only"},
		"path":               {"rules: [{match: {paths: [a]}, fault: {kind: Close}}]", `match.paths "a": want one that begins with "/"`},
		"events of requests": {"rules: [{events: {names: [a]}, fault: {kind: Close}}]", "Close is done to requests and not to events"},
		"event type":         {"rules: [{events: {types: [Added]}, fault: {kind: DropEvent}}]", `events.types "Added": want one of ADDED`},
		"negative count":     {"rules: [{count: {from: -1}, fault: {kind: Close}}]", "cannot be negative"},
		"times of a freeze":  {"rules: [{count: {times: 1}, fault: {kind: Freeze}}]", "only from makes sense"},
		"no code":            {"rules: [{fault: {kind: Error}}]", "fault.code: Error needs it"},
		"code of a loss":     {"rules: [{fault: {kind: LoseAnswer, code: 201}}]", "fault.code 201: want an HTTP status from 400 to 599"},
		"code":               {"rules: [{fault: {kind: Error, code: 200}}]", "fault.code 200: want an HTTP status from 400 to 599"},
		"code of others":     {"rules: [{fault: {kind: Delay, for: 1s, code: 500}}]", "fault.code: Delay has no such field, but for"},
		"field of none":      {"rules: [{fault: {kind: Close, for: 1s}}]", "fault.for: Close has no such field"},
		"duration":           {"rules:\n- fault:\n    kind: Delay\n    for: 5", `line 4: "5" is not a duration`},
		"negative duration":  {"rules: [{fault: {kind: Delay, for: -1s}}]", `"-1s" is not a duration`},
		"when of a read":     {"rules: [{match: {verbs: [get, list]}, when: object.a, fault: {kind: Close}}]", "when: the requests of this rule have no object, as only create, update, patch, delete have one"},
		"when of a kind":     {"rules: [{when: object.a, fault: {kind: Stale}}]", "when: the requests of this rule have no object"},
		"when of a path":     {"rules: [{match: {paths: [/readyz]}, when: object.a, fault: {kind: Close}}]", "when: requests for match.paths have no object"},
		"when that is none":  {"rules: [{when: object., fault: {kind: DropEvent}}]", `when: "object." is not an expression in CEL`},
		"two moments":        {"rules: [{fault: {kind: Stale, resourceVersion: '5', asOf: a}}]", "fault.asOf: leave it out, or resourceVersion"},
		"as of for others":   {"rules: [{fault: {kind: Hang, asOf: a}}]", "fault.asOf: Hang has no such field, but for"},
		"no side of a crash": {"rules: [{fault: {kind: Crash}}]", "fault.at: Crash needs it"},
		"side of a crash":    {"rules: [{fault: {kind: Crash, at: during}}]", `fault.at "during": want before or after`},
		"times of a mark":    {"rules: [{count: {times: 1}, fault: {kind: Mark}}]", "a Mark is of one moment: only from makes sense"},
		"part of a second":   {"rules: [{fault: {kind: Error, code: 429, retryAfter: 1500ms}}]", "want whole seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.scenario))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want one line with %q", err, tc.want)
			}
		})
	}
}

var block = regexp.MustCompile("(?s)```yaml\n(rules:.*?)```")

// TestAllMistakes checks that Parse reports all mistakes of a scenario, each with its line number.
func TestAllMistakes(t *testing.T) {
	_, err := Parse([]byte(`rules:
- name: a
  match: {verbs: [PATCH, get], resources: [Nodes]}
  count: {times: -1}
  fault: {kind: Freeze}
- fault: {kind: close}
- name: a
  fault: {kind: Error}
`))
	checkMistakes(t, err, []string{
		`line 2: rule "a": match.verbs "PATCH"`, `line 2: rule "a": match.verbs "get"`, `line 2: rule "a": match.resources "Nodes"`,
		`line 2: rule "a": count: from`, `line 6: rule "rule-2": fault.kind "close"`,
		`line 7: rule "a": fault.code: Error needs it`, `line 7: rule "a": another rule has that name`,
	})
}

// TestAllUnknownFields checks that Parse reports all unknown fields.
func TestAllUnknownFields(t *testing.T) {
	_, err := Parse([]byte("rules:\n- nam: a\n  fault:\n    kind: Error\n    status: 500\n"))
	checkMistakes(t, err, []string{`line 2: a rule has no field "nam"`, `line 5: a fault has no field "status"`})
}

// TestUnknownFieldsAndMistakes checks that an unknown field in one rule does not hide the mistakes
// of another rule.
func TestUnknownFieldsAndMistakes(t *testing.T) {
	_, err := Parse([]byte("rules:\n- nam: a\n  fault: {kind: Error}\n- fault: {kind: close}\n"))
	checkMistakes(t, err, []string{`line 2: a rule has no field "nam"`, `line 4: rule "rule-2": fault.kind "close"`})
}

func checkMistakes(t *testing.T, err error, want []string) {
	t.Helper()
	var got MistakesError
	if !errors.As(err, &got) || len(got) != len(want) {
		t.Fatalf("got %v, want %d mistakes", err, len(want))
	}
	for i, mistake := range got {
		if !strings.HasPrefix(mistake.Error(), want[i]) || strings.Contains(mistake.Error(), "\n") {
			t.Errorf("mistake %d is %q, want one line that begins with %q", i, mistake, want[i])
		}
		if !strings.Contains(err.Error(), "\n  "+want[i]) {
			t.Errorf("%q is not a line of:\n%s", want[i], err)
		}
	}
}

// TestPage checks that the manual's scenarios can be parsed, and that the manual names every kind
// of fault.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "fault-proxy-rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := block.FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("there are no scenarios on the page")
	}
	for _, b := range blocks {
		if _, err := Parse(b[1]); err != nil {
			t.Errorf("%v\n%s", err, b[1])
		}
	}
	for _, kind := range Kinds() {
		if !strings.Contains(string(page), "`"+string(kind)+"`") {
			t.Errorf("the page does not say what %s is", kind)
		}
	}
}

// FuzzParse checks that any input is either decoded into rules, or rejected with mistakes of one
// line each, and that rules survive a round trip through JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"rules: [{fault: {kind: Close}}]",
		"rules:\n- name: a\n  match: {verbs: [write], resources: [nodes, '!*/status'], names: ['*'], userAgents: [x/*]}\n  count: {from: 2, every: 3, times: 1}\n  fault: {kind: Error, code: 429, retryAfter: 2s}",
		"rules:\n- events: {types: [BOOKMARK], initial: true}\n  fault: {kind: DelayEvent, for: 1m}",
		"rules: &a [{fault: {kind: Close}, name: *a}]", "rules: [null]", "{", "rules: {}", "a: &x [*x]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := Parse(text)
		if err != nil {
			var found MistakesError
			if !errors.As(err, &found) || len(found) == 0 {
				t.Fatalf("not mistakes: %v", err)
			}
			for _, mistake := range found {
				if strings.Contains(mistake.Error(), "\n") {
					t.Errorf("a mistake of several lines: %q", mistake)
				}
			}
			return
		}
		shown, err := json.Marshal(map[string]any{"rules": rules})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(shown)
		if err != nil || shownAs(rules) != shownAs(again) {
			t.Errorf("%s is read as %+v, %v", shown, again, err)
		}
	})
}

// shownAs encodes rules in the same way as the control API, so that nil and empty lists are equal.
func shownAs(rules []Rule) string {
	text, _ := json.Marshal(rules)
	return string(text)
}
