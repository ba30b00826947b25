// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// wrong is a minimal implementation of Finding.
type wrong struct {
	Evidence `json:",inline"`

	ID     string `json:"id"`
	What   string `json:"what"`
	Weight int    `json:"weight"`
}

func (w *wrong) Case() string          { return w.ID }
func (w *wrong) Title() string         { return w.What + "!" }
func (w *wrong) Where() string         { return "in " + w.ID }
func (w *wrong) Details() []string     { return []string{w.What, "<more>"} }
func (w *wrong) Describe(to io.Writer) { Lines(to, w.Details()) }
func (w *wrong) Confirmed() bool       { return w.Repeated > 0 }
func (w *wrong) Kind() string          { return w.What }
func (w *wrong) Rank() []int           { return []int{w.Weight} }

var tool = &Tool[*wrong]{
	Name: "try", Cases: "cases", Subject: "thing", Page: NewPage(`<p class="what">{{.What}}</p>`),
	Parse: func(text []byte) (*wrong, error) {
		w := &wrong{}
		if err := yaml.UnmarshalStrict(text, w); err != nil {
			return nil, err
		}
		if w.ID == "" {
			return nil, errors.New("it has no id")
		}
		return w, nil
	},
}

func find(id, what string, weight, repeated int) *wrong {
	return &wrong{ID: id, What: what, Weight: weight, Evidence: Evidence{
		Command: []string{"./operator"}, Repeated: repeated, Timeline: []Moment{{Seconds: 1, Lane: Operator, Text: "update"}},
	}}
}

// of returns an About for a command, with the given hashes of the program and the installed
// manifests.
func of(command string, contents ...string) About {
	a := About{Command: []string{command}, Of: []string{"file"}, Contents: map[string]string{}}
	for i, content := range contents {
		a.Contents[[]string{theProgram, theInstalled}[i]] = content
	}
	return a
}

func open(t *testing.T, dir string, about About) *Book[*wrong] {
	t.Helper()
	book, err := tool.Open(dir, about)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	return book
}

// keep writes records of cases and findings to a directory.
func keep(t *testing.T, dir string, played []Played, found ...*wrong) {
	t.Helper()
	book := open(t, dir, of("one", "1", "1"))
	for _, p := range played {
		if err := book.Note(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range found {
		if err := book.Found(f); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenAgain checks that a run continues after an interruption at any time, and that a run with
// another command does not continue it.
func TestOpenAgain(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, []Played{{ID: "a", Name: "A", Outcome: "fine", Seconds: 2}}, find("b", "lost", 1, 1))
	file, err := os.OpenFile(filepath.Join(dir, playedFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"id":"half`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir, of("one", "1", "1"))
	if len(again.Played) != 1 || again.Played[0].Name != "A" || len(again.Findings) != 1 || again.Findings[0].Title() != "lost!" {
		t.Errorf("it goes on with %+v", again.Result)
	}
	unused := t.TempDir()
	open(t, unused, of("wrong"))
	open(t, unused, of("right"))
	if _, err := tool.Open(dir, of("other")); err == nil || !strings.Contains(err.Error(), "has the results of another thing: give another, or forget them with --fresh") {
		t.Errorf("it was opened for something else: %v", err)
	}
}

func TestMerge(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	keep(t, first, []Played{{ID: "a", Seconds: 2}, {ID: "b", Seconds: 3, Error: "no"}}, find("a", "lost", 2, 1))
	keep(t, second, []Played{{ID: "b", Seconds: 3}, {ID: "c", Seconds: 4, Outcome: NotReached}}, find("c", "lost", 1, 1), find("a", "lost", 2, 1))
	merged, err := tool.Merge([]string{first, second})
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Played) != 3 || merged.Planned != 3 || merged.Took != 9*time.Second || len(merged.Findings) != 2 {
		t.Errorf("merged to %+v", merged)
	}
	if merged.Failed() != 0 || merged.Came(NotReached) != 1 || merged.Confirmed() != 1 {
		t.Errorf("%d failed, %d were not reached, %d found", merged.Failed(), merged.Came(NotReached), merged.Confirmed())
	}
	var text bytes.Buffer
	tool.findings(&text, merged, "results")
	// A finding's path is relative to the directory of its file.
	want := `
1. lost!
   in c
     lost
     <more>
   what happened (in seconds):
         1.00  operator  update
   the same with 1 other cases, such as: in a
   again: sandbox replay ` + second + `/finding-c.yaml
`
	if text.String() != want {
		t.Errorf("the report is\n%s\nwant\n%s", text.String(), want)
	}
	if _, err := tool.Merge([]string{first, t.TempDir()}); err == nil || !strings.Contains(err.Error(), "has no results of sandbox try") {
		t.Errorf("nothing was merged: %v", err)
	}
}

// TestMergeCasesThatWerePlayedTwice checks that Merge keeps a case's most significant record,
// regardless of the order of the directories.
func TestMergeCasesThatWerePlayedTwice(t *testing.T) {
	for what, outcomes := range map[string][]Played{
		"judged":      {{Error: "slow"}, {Outcome: "fine"}},
		"reached":     {{Outcome: NotReached}, {Outcome: "fine"}},
		"found":       {{Error: "slow"}, {Outcome: "fine"}, {Outcome: "fine", Found: true}},
		"made sure":   {{Outcome: "fine", Found: true, Unsure: true}, {Outcome: "fine", Found: true}},
		"found, once": {{Outcome: "fine"}, {Outcome: "fine", Found: true, Unsure: true}},
	} {
		for _, reversed := range []bool{false, true} {
			all := slices.Clone(outcomes)
			if reversed {
				slices.Reverse(all)
			}
			var dirs []string
			for _, p := range all {
				p.ID = "a"
				dir := t.TempDir()
				if p.Found && !p.Unsure {
					keep(t, dir, []Played{p}, find("a", "lost", 1, 1))
				} else if p.Found {
					keep(t, dir, []Played{p}, find("a", "lost", 1, 0))
				} else {
					keep(t, dir, []Played{p})
				}
				dirs = append(dirs, dir)
			}
			merged, err := tool.Merge(dirs)
			if err != nil {
				t.Fatal(err)
			}
			want := outcomes[len(outcomes)-1]
			if p := merged.Played[0]; len(merged.Played) != 1 || p.Outcome != want.Outcome || p.Error != "" || p.Found != want.Found || p.Unsure != want.Unsure {
				t.Errorf("%s, reversed %t: it counts as %+v", what, reversed, merged.Played)
			}
			if sure := want.Found && !want.Unsure; sure != (merged.Confirmed() == 1) {
				t.Errorf("%s, reversed %t: %d are certain", what, reversed, merged.Confirmed())
			}
		}
	}
}

// TestDifferentResults checks that results of different commands cannot be merged, and that a
// directory with another tool's results cannot be opened.
func TestDifferentResults(t *testing.T) {
	first, second, others := t.TempDir(), t.TempDir(), t.TempDir()
	keep(t, first, []Played{{ID: "a"}})
	open(t, second, of("two"))
	if _, err := tool.Merge([]string{first, second}); err == nil || !strings.Contains(err.Error(), "have the results of another thing each") {
		t.Errorf("they were merged: %v", err)
	}
	if err := os.WriteFile(filepath.Join(others, "fuzz.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Open(others, of("one")); err == nil || !strings.Contains(err.Error(), "has the results of sandbox fuzz") {
		t.Errorf("a directory of another tool was opened: %v", err)
	}
	if err := os.WriteFile(tool.store().aboutFile(first), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Merge([]string{first}); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged directory was read: %v", err)
	}
}

// TestJudged checks that a result without evidence is an error, not a success.
func TestJudged(t *testing.T) {
	many := func(of int, p Played) (all []Played) {
		for i := range of {
			p.ID = fmt.Sprint(i, p.Outcome)
			all = append(all, p)
		}
		return all
	}
	failed, unreached := Played{ID: "a", Error: "slow\nmore"}, Played{Outcome: NotReached}
	for want, played := range map[string][]Played{
		"": append(many(9, Played{}), failed),
		"1 of the 9 that were played could not be judged, more than a tenth, such as: slow.": append(many(8, Played{}), failed),
		"none of the 20 that were played was reached":                                        append(many(20, unreached), failed),
		"nothing was played":    {},
		"could be judged: slow": {{ID: "a", Error: "slow\nmore"}, {ID: "b", Error: "late"}},
	} {
		if err := (&Result[*wrong]{Played: played}).Judged(); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestMergeParts checks that Merge counts the cases without a record and lists the missing parts.
func TestMergeParts(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		keep(t, dir, []Played{{ID: fmt.Sprint("played ", i)}})
		book := open(t, dir, of("one", "1", "1"))
		if err := book.Plan(2*i+1, 4, []string{fmt.Sprint("played ", i), fmt.Sprint("left ", i), "left, too"}); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := tool.Merge(dirs)
	if err != nil || merged.Planned != 5 || merged.Left != 3 || !slices.Equal(merged.Missing, []string{"2/4", "4/4"}) {
		t.Errorf("merged to %+v, %v", merged, err)
	}
	if doubt := merged.Doubt(); !slices.Equal(doubt, []string{"Parts of which nothing is here: 2/4, 4/4."}) {
		t.Errorf("the report says %q", doubt)
	}
	if err := merged.Judged(); err == nil || !strings.Contains(err.Error(), "of the parts 2/4, 4/4 there is nothing") {
		t.Errorf("judged is %v", err)
	}
}

// TestGroups checks that findings are grouped by kind and sorted by rank, and that unconfirmed
// findings have their own groups.
func TestGroups(t *testing.T) {
	r := &Result[*wrong]{Findings: []*wrong{find("a", "late", 3, 1), find("b", "lost", 2, 1), find("c", "odd", 0, 0), find("d", "lost", 1, 1), find("e", "lost", 0, 0)}}
	confirmed, once := r.Groups()
	var ids []string
	for _, g := range append(confirmed, once...) {
		ids = append(ids, fmt.Sprintf("%s+%d", g.Finding.ID, len(g.Also)))
	}
	if !slices.Equal(ids, []string{"d+2", "a+0", "c+0"}) || len(once) != 1 {
		t.Errorf("the groups are %q, %d of them found once", ids, len(once))
	}
}

func TestReports(t *testing.T) {
	r := &Result[*wrong]{
		Played:   []Played{{ID: "a", Name: "A"}, {ID: "b", Name: "B", Error: "why\nand more"}, {ID: "c", Name: "C", Outcome: NotReached}, {ID: "d", Name: "<D>", Outcome: "fine"}},
		Findings: []*wrong{find("a", "lost", 1, 1), find("d", "odd", 1, 0)}, Took: 3 * time.Second,
	}
	r.Findings[1].Tries, r.Findings[1].Second = 1, "it came to rest"
	text := func(file string, r *Result[*wrong]) error {
		var report bytes.Buffer
		tool.findings(&report, r, "results")
		return os.WriteFile(file, report.Bytes(), 0o600)
	}
	dir := t.TempDir()
	for file, tc := range map[string]struct {
		write func(string, *Result[*wrong]) error
		says  []string
	}{
		"junit.xml": {tool.JUnit, []string{
			`<testsuite name="sandbox try" tests="4" failures="1" errors="1" skipped="1" time="3">`, `<failure message="lost!">lost&#xA;&lt;more&gt;</failure>`,
			`<error message="why">`, `<skipped message="not reached">`, `<testcase name="&lt;D&gt;" classname="try" time="0"></testcase>`,
		}},
		"report.html": {tool.HTML, []string{
			"<title>sandbox try: 1 found</title>", `<p class="what">lost</p>`, "4 cases played", "<td>update</td>", "Found once, and not again", "<li>odd!: in d; the second time: it came to rest</li>", "<code>&lt;D&gt;</code></td><td>fine</td>",
		}},
		"report.txt": {text, []string{"Found once and not when it was played again (it came to rest), so it may be chance: odd!\n  in d\n"}},
	} {
		path := filepath.Join(dir, file)
		if err := tc.write(path, r); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range tc.says {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %s:\n%s", file, part, text)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	var all []Moment
	for i := range 40 {
		all = append(all, Moment{Seconds: float64(i), Text: "-"})
	}
	for _, tc := range []struct {
		name          string
		fault, broken int
		want          string
	}{
		{"nothing", -1, -1, "32-39"},
		{"a fault", 20, -1, "19-22 36-39"},
		{"a fault at the beginning", 0, -1, "0-3 36-39"},
		{"a fault near the end", 33, -1, "32-39"},
		{"something that is broken", 20, 1, "0-7"},
		{"something that is broken at the end", 20, 39, "32-39"},
	} {
		moments := slices.Clone(all)
		if tc.fault >= 0 {
			moments[tc.fault].Text = Fault + "x"
		}
		if tc.broken >= 0 {
			moments[tc.broken].Text = Broken + "y"
		}
		near, last := nearest(moments, 8)
		got := fmt.Sprintf("%.0f-%.0f", near[0].Seconds, near[len(near)-1].Seconds)
		if len(last) > 0 {
			got += fmt.Sprintf(" %.0f-%.0f", last[0].Seconds, last[len(last)-1].Seconds)
		}
		if got != tc.want || len(near)+len(last) != 8 {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestPlace checks that Place looks for a finding's program and files in the current working
// directory.
func TestPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("operator", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	own := Evidence{Command: []string{"./operator", "--fast"}, Directory: "/home/someone"}
	lost := Evidence{Command: []string{"bin/operator"}, Directory: "/home/someone"}
	for _, tc := range []struct {
		name         string
		e            Evidence
		other, files []string
		want         []string
		says         string
	}{
		{name: "its own", e: own, want: own.Command},
		{name: "another", e: lost, other: []string{"./fixed"}, want: []string{"./fixed"}},
		{name: "one in the PATH", e: Evidence{Command: []string{"op"}}, want: []string{"op"}},
		{name: "one that is not here", e: lost, says: "it needs bin/operator, which is not in the working directory: play it again in /home/someone, where it was found, or in one like that"},
		{name: "a file that is not here", e: own, files: []string{"crds"}, says: "it needs crds, which is not"},
		{name: "a file that is nowhere", e: own, files: []string{"/nowhere/crds"}, says: "/nowhere/crds: no such file"},
	} {
		command, err := tc.e.Place(tc.other, tc.files)
		if tc.says == "" && (err != nil || !slices.Equal(command, tc.want)) || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %q, %v", tc.name, command, err)
		}
	}
}
