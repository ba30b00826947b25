// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPairs checks that each pair has a unique name, input for either explore or fuzz, and an
// expected finding.
func TestPairs(t *testing.T) {
	var names []string
	for _, p := range Pairs() {
		if slices.Contains(names, p.Name) {
			t.Errorf("there are two pairs %q", p.Name)
		}
		names = append(names, p.Name)
		if (p.Steps == "") == (len(p.Edits) == 0) || p.Steps != "" && len(p.Faults) == 0 || p.Mistake == "" || p.Says == "" {
			t.Errorf("%s is not whole", p.Name)
		}
	}
	if len(names) < 30 {
		t.Errorf("there are %d pairs", len(names))
	}
}

// unpaired maps the oracles that no pair shows to the reason.
var unpaired = map[string]string{
	"refused, and yet changed": "only an admission webhook hears of an edit that is refused, and the operators have none",
}

// TestEachOracleHasAPair checks that a pair shows each oracle of explore and fuzz, including new
// ones, unless unpaired has the reason.
func TestEachOracleHasAPair(t *testing.T) {
	var oracles []string
	for _, dir := range []string{"explore/judge", "fuzz"} {
		files, err := filepath.Glob(filepath.Join("../../internal", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Clean(file))
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range regexp.MustCompile(`Oracle\s*= "(.*)"`).FindAllStringSubmatch(string(text), -1) {
				oracles = append(oracles, match[1])
			}
		}
	}
	if len(oracles) < 11 {
		t.Errorf("the oracles are only %q", oracles)
	}
	for _, oracle := range oracles {
		paired := slices.ContainsFunc(Pairs(), func(p Pair) bool { return strings.HasPrefix(p.Oracle, oracle) })
		if paired == (unpaired[oracle] != "") {
			t.Errorf("%q has a pair: %t, and the reason %q for none", oracle, paired, unpaired[oracle])
		}
	}
	for oracle := range unpaired {
		if !slices.Contains(oracles, oracle) {
			t.Errorf("there is no oracle %q", oracle)
		}
	}
}

// TestVerdict checks that a mistake counts as found only if a finding names its symptom. It also
// checks that a pair fails if its twin has findings, or if no fault took effect on the twin.
func TestVerdict(t *testing.T) {
	const report = `
1. invariant broken: ReplicaSet default/a has too many
   without any fault
     ReplicaSet default/a has too many

2. other state: configmaps default/a: it is missing (and 1 more)
   in step 1
     configmaps default/a: it is missing
     configmaps default/b: data.role is leader

Played 3 of 8 faults in 59s, of which 2 were reached; 0 not played. Found: 2.
`
	pair := Pair{Name: "a", Oracle: "other state", Says: "role is leader"}
	read := func(text string, p Pair) (o Outcome) {
		o.read(text, p)
		return o
	}
	found := read(report, pair)
	if len(found.Found) != 2 || !strings.HasPrefix(found.As, "other state: configmaps default/a") || found.Played != 3 || found.Reached != 2 {
		t.Errorf("%+v", found)
	}
	if o := read(report, Pair{Oracle: "invariant broken", Says: "role is leader"}); o.As != "" {
		t.Errorf("what another finding says counts: %+v", o)
	}
	clean := read("Played 2 of 2 faults in 9s, of which 2 were reached; 0 not played. Found: 0.\n", pair)
	idle := read("Played 2 of 2 faults in 9s, of which 0 were reached; 0 not played. Found: 0.\n", pair)
	for _, tc := range []struct {
		Result
		ok bool
	}{
		{Result{pair, found, clean}, true},
		{Result{pair, clean, clean}, false},
		{Result{pair, found, found}, false},
		{Result{pair, found, idle}, false},
	} {
		var sum strings.Builder
		if ok := Sum(&sum, []Result{tc.Result}); ok != tc.ok || tc.OK() != tc.ok {
			t.Errorf("%s%s: want %t", tc.Line(), sum.String(), tc.ok)
		}
	}
	if line, want := (&Result{pair, found, clean}).Line(), "| `a` |  | other state | 2, 2 | none |\n"; line != want {
		t.Errorf("got %q, want %q", line, want)
	}
}

// TestSearchEnds checks that a search ends early only once the mistake has definitely been found.
func TestSearchEnds(t *testing.T) {
	found := 0
	s := search{pair: Pair{Oracle: "other state", Says: "role is leader"}, found: func() { found++ }}
	for _, text := range []string{
		"Learning from two undisturbed runs.\n[1 of 3, 2s to go] a (3.0 s): ok\n",
		"[2 of 3, 1s to go] b (4.0 s): FOUND: not at rest: role is leader\n",
		"[2 of 3, 1s to go] b (4.0 s): found once, and not again: other state: role is leader\n",
		"[3 of 3, 1s to go] c (4.0 s): FOUND: other st",
	} {
		if _, err := s.Write([]byte(text)); err != nil || found > 0 {
			t.Fatalf("%q: %v, found %d times", text, err, found)
		}
	}
	if _, err := s.Write([]byte("ate: configmaps default/b: data.role is leader\n")); err != nil || found != 1 {
		t.Errorf("%v, found %d times", err, found)
	}
}

// TestTable checks that the table lists wrong verdicts first.
func TestTable(t *testing.T) {
	right := Outcome{Reached: 1}
	results := []Result{
		{Pair{Name: "fine"}, Outcome{As: "other state", Reached: 1}, right},
		{Pair{Name: "missed"}, Outcome{Reached: 1}, right},
	}
	var table strings.Builder
	Table(&table, results)
	if rows := table.String(); strings.Index(rows, "missed") > strings.Index(rows, "fine") || !strings.HasPrefix(rows, Head) {
		t.Error(rows)
	}
}
