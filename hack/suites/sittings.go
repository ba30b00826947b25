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

// write writes the file, and the page with the table.
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

// sum is what came of a suite in all sittings.
type sum struct {
	rounds, failed  int
	commits, dates  []string
	busiest, idlest int
	// tests are those that failed, and how often.
	tests map[string]int
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
	for test, times := range suite.Failed {
		if s.tests == nil {
			s.tests = map[string]int{}
		}
		s.tests[test] += times
	}
}

// span names the first and the last of several.
func span(names []string) string {
	if names = slices.Compact(names); len(names) > 1 {
		return names[0] + " to " + names[len(names)-1]
	}
	return names[0]
}

// sums returns what came of each suite.
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

// fewest returns those suites that have the fewest rounds so far, as many as wanted: of suites with as many
// rounds, those that take the least time.
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

// print prints a table of what came of each suite in all sittings.
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

// tablePath is the page beside a file of sittings that has their table, "" without a file.
func tablePath(file string) string {
	if file == "" {
		return ""
	}
	return strings.TrimSuffix(file, filepath.Ext(file)) + ".md"
}

// page is the page with the table.
func (all sittings) page() string {
	var page strings.Builder
	page.WriteString("# Rounds on a busy machine\n\nWritten by `make flakes`, which runs suites again and again while other processes keep the processors busy.\n")
	all.print(&page)
	return page.String()
}
