// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPlanChooses(t *testing.T) {
	for _, tc := range []struct {
		only []string
		want bool
	}{
		{nil, true},
		{[]string{"pods"}, true},
		{[]string{"secrets", "create"}, true},
		{[]string{"1a2b"}, true},
		{[]string{"1a"}, false},
		{[]string{"secrets"}, false},
	} {
		p := Plan{Only: tc.only, Shard: 1, Shards: 1}
		if got := p.Chooses("create pods", "1a2b"); got != tc.want {
			t.Errorf("--only %q: chosen: %t, want %t", tc.only, got, tc.want)
		}
		if got := p.Plays("create pods", "1a2b"); got != tc.want {
			t.Errorf("--only %q: played: %t, want %t", tc.only, got, tc.want)
		}
	}
	plays := 0
	for shard := 1; shard <= 3; shard++ {
		if p := (Plan{Only: []string{"pods"}, Shard: shard, Shards: 3}); p.Plays("create pods", "1a2b") {
			plays++
		}
	}
	if plays != 1 {
		t.Errorf("%d of 3 parts play it", plays)
	}
}

func TestNothingToPlay(t *testing.T) {
	for want, p := range map[string]Plan{
		"no fault to play: no fault matches --only a, b: use a name":   {Only: []string{"a", "b"}, Shard: 1, Shards: 2},
		"no fault to play: part 2/4 is empty, as there are few faults": {Shard: 2, Shards: 4},
		"no fault to play: the operator does nothing":                  {Shard: 1, Shards: 1},
	} {
		if got := p.Nothing("fault", "use a name", "the operator does nothing").Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestLike checks that Like returns only confirmed findings of the same kind.
func TestLike(t *testing.T) {
	b := &Book[*wrong]{Result: &Result[*wrong]{Findings: []*wrong{find("a", "lost", 1, 0), find("b", "lost", 1, 1), find("c", "late", 1, 1)}}}
	for what, want := range map[string]string{"lost": "b", "late": "c", "odd": ""} {
		if got := b.Like(find("d", what, 1, 0)); got != want {
			t.Errorf("%s is like %q, want %q", what, got, want)
		}
	}
}

// TestBegin checks that Begin continues the results in a directory, limits the time of the run, and
// discards earlier results if Fresh is set.
func TestBegin(t *testing.T) {
	dir := t.TempDir()
	in := Inputs{Command: []string{"./operator"}, Subject: "shop"}
	begin := func(p Plan) (*Book[*wrong], bool, string) {
		t.Helper()
		var text bytes.Buffer
		p.Progress = &text
		book, over, end, err := tool.Begin(t.Context(), dir, in, p)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		if err := book.Note(Played{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		deadline, limited := over.Deadline()
		if limited && time.Until(deadline) > p.For {
			t.Errorf("it is over in %s, want at most %s", time.Until(deadline), p.For)
		}
		return book, limited, text.String()
	}
	if _, limited, text := begin(Plan{}); limited || text != "" {
		t.Errorf("the first time: limited: %t, it says %q", limited, text)
	}
	if book, limited, text := begin(Plan{For: time.Hour}); !limited || !strings.Contains(text, "1 cases were played before") || book.Elapsed() < 0 {
		t.Errorf("the second time: limited: %t, it says %q", limited, text)
	}
	if book, _, text := begin(Plan{Fresh: true}); len(book.Played) != 1 || text != "" {
		t.Errorf("from the start: %d played, it says %q", len(book.Played), text)
	}
	in.Command = []string{"./another"}
	if _, _, _, err := tool.Begin(t.Context(), dir, in, Plan{Progress: io.Discard}); err == nil {
		t.Error("the results of another operator are continued")
	}
}

// TestText checks that the terminal report lists outcomes, doubts and remarks after the findings.
func TestText(t *testing.T) {
	with := *tool
	with.Outcomes = func(*Result[*wrong]) string { return "Played some" }
	r := &Result[*wrong]{Findings: []*wrong{find("a", "lost", 1, 1)}, Left: 2, Missing: []string{"2/3"}, Remarks: []string{"Lists are streamed."}}
	var text bytes.Buffer
	with.Text(&text, r, "results")
	before := -1
	for _, part := range []string{"1. lost!", "\nPlayed some; 2 not played. Found: 1.\n", "Parts of which nothing is here: 2/3.\n", "Lists are streamed.\n", "What this result means:"} {
		at := strings.Index(text.String(), part)
		if at <= before {
			t.Errorf("%q is at %d, after %d:\n%s", part, at, before, text.String())
		}
		before = at
	}
	text.Reset()
	with.TextOf(&text, r.Findings[0], "results")
	if !strings.Contains(text.String(), "1. lost!") || strings.Contains(text.String(), "not played") {
		t.Errorf("of a finding it says\n%s", text.String())
	}
}

// TestVerdict checks that a finding that was found once is reported with what the second run showed.
func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		repeated, tries int
		second, want    string
	}{
		{repeated: 1, tries: 1, want: "FOUND: lost!"},
		{want: "found once, and there is no time to play it again: lost!"},
		{tries: 1, second: "all was well", want: "found once: lost!; and not again: all was well"},
		{tries: 1, want: "found once, and not again: lost!"},
	} {
		f := find("a", "lost", 1, tc.repeated)
		f.Tries, f.Second = tc.tries, tc.second
		if got := Verdict(f); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
