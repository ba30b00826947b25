// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sittings lists the results of all recorded runs of make flakes. Rounds take hours, so they are
// spread over several runs.
type sittings []rounds

// readSittings reads the sittings recorded in a file, which need not exist yet. It returns nil if
// the name is empty.
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

// write writes the sittings to a file, and a table of the results to a page next to the file.
func (all sittings) write(file string) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(tablePath(file), []byte(all.page()), 0o644)
}

// sum is a suite's result over all sittings.
type sum struct {
	rounds, failed  int
	commits, dates  []string
	busiest, idlest int
	// tests maps each failed test to the number of its failures.
	tests map[string]int
}

// add adds a suite's rounds in one sitting.
func (s *sum) add(r rounds, suite *suiteRounds) {
	if s.rounds == 0 || r.Busy < s.idlest {
		s.idlest = r.Busy
	}
	s.busiest = max(s.busiest, r.Busy)
	s.rounds += suite.Rounds
	s.failed += suite.Rounds - suite.Clean
	s.commits = append(s.commits, r.Commit)
	s.dates = append(s.dates, r.Date)
	for test, times := range suite.Failed {
		if s.tests == nil {
			s.tests = map[string]int{}
		}
		s.tests[test] += times
	}
}

// span formats a sorted list of names as its first and last element.
func span(names []string) string {
	if names = slices.Compact(names); len(names) > 1 {
		return names[0] + " to " + names[len(names)-1]
	}
	return names[0]
}

// sums returns the results over all sittings, keyed by suite.
func (all sittings) sums() map[string]*sum {
	sums := map[string]*sum{}
	for _, sitting := range all {
		for name, suite := range sitting.Suites {
			if sums[name] == nil {
				sums[name] = &sum{}
			}
			sums[name].add(sitting, suite)
		}
	}
	return sums
}

// fewest returns the wanted number of suites with the fewest rounds so far. Among suites with the
// same number of rounds, it prefers the shortest.
func (all sittings) fewest(suites []suite, wanted int) []suite {
	sums := all.sums()
	played := func(s suite) int {
		if sums[s.name] == nil {
			return 0
		}
		return sums[s.name].rounds
	}
	suites = slices.Clone(suites)
	slices.SortStableFunc(suites, func(a, b suite) int {
		return cmp.Or(cmp.Compare(played(a), played(b)), cmp.Compare(a.seconds, b.seconds))
	})
	return suites[:min(wanted, len(suites))]
}

// print prints a table with each suite's results over all sittings.
func (all sittings) print(out io.Writer) {
	sums := all.sums()
	fmt.Fprint(out, "\n| Suite | Rounds | With a failure | What failed | Busy processes | Commit | Date |\n|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		busy := fmt.Sprint(s.busiest)
		if s.idlest != s.busiest {
			busy = fmt.Sprintf("%d to %d", s.idlest, s.busiest)
		}
		var tests []string
		for _, test := range slices.Sorted(maps.Keys(s.tests)) {
			tests = append(tests, fmt.Sprintf("%s (%d)", test, s.tests[test]))
		}
		fmt.Fprintf(out, "| %s | %d | %d | %s | %s | %s | %s |\n", name, s.rounds, s.failed, strings.Join(tests, ", "), busy, span(s.commits), span(s.dates))
	}
}

// tablePath returns the path of the page with the table, which is next to the file of sittings. It
// returns "" if file is empty.
func tablePath(file string) string {
	if file == "" {
		return ""
	}
	return strings.TrimSuffix(file, filepath.Ext(file)) + ".md"
}

// page returns the Markdown page with the table of results.
func (all sittings) page() string {
	var page strings.Builder
	page.WriteString("# Rounds on a busy machine\n\nWritten by `make flakes`, which runs suites again and again while other processes keep the processors busy.\n")
	all.print(&page)
	return page.String()
}
