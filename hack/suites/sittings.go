// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// sittings are the results of all runs of make flakes that a file has: rounds take hours, and come
// in several.
type sittings []rounds

// readSittings reads the file, which need not exist yet. Without a name there are none.
func readSittings(file string) (sittings, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all sittings
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to count from the start", file, err)
	}
	return all, nil
}

func (all sittings) write(file string) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// sum is what came of a suite in all sittings.
type sum struct {
	rounds, failed  int
	commits, dates  []string
	busiest, idlest int
}

// add adds the rounds of a suite in a sitting.
func (s *sum) add(r rounds, suite *suiteRounds) {
	if s.rounds == 0 || r.Busy < s.idlest {
		s.idlest = r.Busy
	}
	s.busiest = max(s.busiest, r.Busy)
	s.rounds += suite.Rounds
	s.failed += suite.Rounds - suite.Clean
	s.commits = append(s.commits, r.Commit)
	s.dates = append(s.dates, r.Date)
}

// span names the first and the last of several.
func span(names []string) string {
	if names = slices.Compact(names); len(names) > 1 {
		return names[0] + " to " + names[len(names)-1]
	}
	return names[0]
}

// print prints a table for CONTRIBUTING.md: what came of each suite in all sittings.
func (all sittings) print(out io.Writer) {
	sums := map[string]*sum{}
	for _, sitting := range all {
		for name, suite := range sitting.Suites {
			if sums[name] == nil {
				sums[name] = &sum{}
			}
			sums[name].add(sitting, suite)
		}
	}
	fmt.Fprint(out, "\nAll sittings:\n\n| Suite | Rounds | With a failure | Busy processes | Commit | Date |\n|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		busy := fmt.Sprint(s.busiest)
		if s.idlest != s.busiest {
			busy = fmt.Sprintf("%d to %d", s.idlest, s.busiest)
		}
		fmt.Fprintf(out, "| %s | %d | %d | %s | %s | %s |\n", name, s.rounds, s.failed, busy, span(s.commits), span(s.dates))
	}
}
