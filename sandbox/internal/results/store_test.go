// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStoreReadsInterrupted checks that the directory of a killed process can be read. A case's
// last record wins, and an incomplete line is ignored.
func TestStoreReadsInterrupted(t *testing.T) {
	dir := t.TempDir()
	s := store[*wrong]{name: "try", subject: "thing", parse: func(text []byte) (*wrong, error) { return nil, json.Unmarshal(text, &struct{}{}) }}
	if _, err := s.read(dir); err == nil || !strings.Contains(err.Error(), "has no results of sandbox try") {
		t.Errorf("an empty directory: %v", err)
	}
	played := `{"id":"a","outcome":"reached"}
{"id":"b","error":"etcd crashed"}
{"id":"b","outcome":"reached"}
{"id":"c","outc`
	for name, text := range map[string]string{"try.json": "{}", playedFile: played} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.read(dir)
	if err != nil || len(r.Played) != 2 || r.Failed() != 0 || r.Played[1].Outcome != "reached" {
		t.Errorf("read %+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "finding-x.yaml"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(dir); err == nil || !strings.Contains(err.Error(), "finding-x.yaml is not a finding of sandbox try") {
		t.Errorf("a damaged finding: %v", err)
	}
}

// TestAddResults checks that the record with the higher weight is kept if several machines have run
// the same case.
func TestAddResults(t *testing.T) {
	found, unsure := Played{ID: "a", Found: true, Seconds: 2}, Played{ID: "a", Found: true, Unsure: true}
	judged, missed, failed := Played{ID: "a", Outcome: "reached"}, Played{ID: "a", Outcome: NotReached}, Played{ID: "a", Error: "crashed"}
	order := []Played{failed, missed, judged, unsure, found}
	for i, less := range order {
		for _, more := range order[i+1:] {
			for _, pair := range [][2]Played{{less, more}, {more, less}} {
				r := &Result[*wrong]{}
				for _, p := range pair {
					r.add(&Result[*wrong]{Played: []Played{p}})
				}
				if len(r.Played) != 1 || r.Played[0].weight() != more.weight() {
					t.Errorf("%+v and %+v become %+v", pair[0], pair[1], r.Played)
				}
			}
		}
	}
	r := &Result[*wrong]{Played: []Played{found, {ID: "b", Seconds: 0.5}}}
	if !r.ids()["b"] || len(r.ids()) != 2 || r.seconds() != 2500*time.Millisecond {
		t.Errorf("cases %v in %s", r.ids(), r.seconds())
	}
}

// TestSummary checks that a summary counts cases by outcome, and combines errors that differ only
// in numbers.
func TestSummary(t *testing.T) {
	s := summary[*wrong]{cases: "faults", effects: []Effect{{"reached", "took effect"}, {"rare", "came seldom"}}, result: &Result[*wrong]{
		Planned: 9, Left: 4, Missing: []string{"2/2"}, Played: []Played{
			{ID: "a", Outcome: "reached"}, {ID: "b", Outcome: "reached", Error: "port 80 is taken\nmore"}, {ID: "c", Error: "port 81 is taken"}, {ID: "d", Error: "etcd crashed"}, {ID: "e", Outcome: "reached"},
		}}}
	for _, tc := range []struct {
		got  []string
		want string
	}{
		{s.playedLines(), "of 9 faults: 5|2 took effect|3 could not be judged|4 were left out: nothing is known of them|of these parts there is nothing: 2/2"},
		{s.unjudgedLines(), "2: port 80 is taken|1: etcd crashed"},
	} {
		if got := strings.Join(tc.got, "|"); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
	var titles []string
	for _, section := range s.sections() {
		titles = append(titles, section.Title)
	}
	if got := strings.Join(titles, ","); got != "Played,Could not be judged,Judged" {
		t.Errorf("sections %s", got)
	}
}
