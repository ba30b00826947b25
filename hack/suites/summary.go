// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// slowest is the number of tests that are listed at the end.
	slowest = 10
	// mostLines is the number of lines of each failure that are printed again at the end, and
	// mostColumns their length. The first failures are explained.
	mostLines, mostColumns   = 16, 300
	explained, mostExplained = 3, 300
)

// told are lines of a failed test that the end repeats: its own messages, panics, data races,
// and the seed of a property test.
var told = regexp.MustCompile(`\.go:\d+: |^panic: |DATA RACE|rapid\.seed|--- FAIL|does not compile|did not end`)

// summary is the result of a run.
type summary struct {
	passed, failed, skipped []result
	// packages are those that failed although none of their tests did.
	packages []result
	suites   []result
	took     time.Duration
}

// ok reports whether nothing failed.
func (s summary) ok() bool {
	return len(s.failed) == 0 && len(s.packages) == 0 && !slices.ContainsFunc(s.suites, func(r result) bool { return r.action == "fail" })
}

// summarize sorts the results.
func (b *book) summarize(took time.Duration) summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := summary{suites: slices.Clone(b.suites), took: took}
	blamed := map[test]bool{} // Packages of which a test failed.
	for _, r := range b.ended {
		if r.name == "" {
			continue
		}
		switch r.action {
		case "pass":
			s.passed = append(s.passed, r)
		case "fail":
			s.failed = append(s.failed, r)
			blamed[test{r.suite, r.pkg, ""}] = true
		case "skip":
			s.skipped = append(s.skipped, r)
		}
	}
	s.skipped = slices.DeleteFunc(s.skipped, func(r result) bool { return s.ranElsewhere(r.test) })
	for _, r := range b.ended {
		switch {
		case r.name != "":
		case r.action == "fail" && !blamed[r.test]:
			s.packages = append(s.packages, r)
		case r.action == "pass" && strings.Contains(r.output, "SKIPPED: "):
			s.skipped = append(s.skipped, r)
		}
	}
	return s
}

// ranElsewhere reports whether a test that one suite skipped was run by another.
func (s summary) ranElsewhere(t test) bool {
	return slices.ContainsFunc(slices.Concat(s.passed, s.failed), func(r result) bool { return r.pkg == t.pkg && r.name == t.name })
}

// write prints the end of a run: the slowest tests, what was skipped and why, what failed and
// how to run it alone, and a line with the numbers.
func (s summary) write(out io.Writer) {
	all := slices.Concat(s.passed, s.failed)
	slices.SortStableFunc(all, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	if len(all) > 0 {
		fmt.Fprintln(out, "\nThe slowest tests:")
	}
	for _, r := range all[:min(slowest, len(all))] {
		fmt.Fprintf(out, "%8.1f s  %s\n", r.seconds, r.test)
	}
	if len(s.suites) > 1 {
		fmt.Fprintln(out, "\nThe suites:")
		for _, r := range s.suites {
			fmt.Fprintf(out, "%8.0f s  %-8s %s\n", r.seconds, words[r.action], r.suite)
		}
	}
	s.writeSkipped(out)
	s.writeFailed(out)
	fmt.Fprintf(out, "\nin %s\n%d passed, %d failed, %d skipped\n", clock(s.took), len(s.passed), len(s.failed)+len(s.packages)+s.failedAlone(), len(s.skipped))
}

var words = map[string]string{"pass": "ok", "fail": "FAILED", "skip": "SKIPPED"}

func (s summary) writeSkipped(out io.Writer) {
	var lines []string
	for _, r := range s.suites {
		if r.action == "skip" {
			lines = append(lines, fmt.Sprintf("all of %s: %s", r.suite, r.output))
		}
	}
	for _, r := range s.skipped {
		lines = append(lines, fmt.Sprintf("%s: %s", r.test, reason(r.output)))
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(out, "\nSKIPPED:")
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(out, "  "+line)
	}
}

// message is the place in the code that testing writes before a message.
var message = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason returns the last message of a test, which is why it was skipped.
func reason(output string) string {
	last := "it does not say why"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if _, why, found := strings.Cut(line, "SKIPPED: "); found {
			last = why
		} else if place := message.FindString(line); place != "" {
			last = line[len(place):]
		}
	}
	return last
}

func (s summary) writeFailed(out io.Writer) {
	if s.ok() {
		return
	}
	fmt.Fprintln(out, "\nFAILED:")
	for i, r := range slices.Concat(s.packages, s.failed) {
		fmt.Fprintf(out, "  %s\n", r.test)
		lines := essence(r.output)
		if all := withoutMarks(r.output); i < explained && len(all) <= mostExplained {
			lines = all
		}
		for _, line := range lines {
			fmt.Fprintln(out, "      "+line)
		}
		fmt.Fprintf(out, "    alone: %s\n", alone(r.test))
	}
	for _, r := range s.suites {
		if r.action == "fail" && r.output != "" {
			fmt.Fprintf(out, "  %s: %s\n", r.suite, r.output)
		}
	}
}

// failedAlone is the number of suites that failed although no test or package of them did.
func (s summary) failedAlone() int {
	count := 0
	for _, r := range s.suites {
		if r.action == "fail" && r.output != "" {
			count++
		}
	}
	return count
}

// alone returns the command that runs a test alone.
func alone(t test) string {
	if t.name == "" {
		return "make suite SUITE=" + t.suite
	}
	return fmt.Sprintf("make suite SUITE=%s RUN='^%s$'", t.suite, t.name)
}

// withoutMarks returns the lines of an output, without those of package testing that say which
// test goes on.
func withoutMarks(output string) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "=== ") })
}

// essence returns the lines of a failure that say what is wrong: the first ones, as the rest
// follows from them, and has been printed in full.
func essence(output string) []string {
	var lines []string
	follows := 0 // How many lines after a message belong to it.
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		switch {
		case told.MatchString(line):
			follows = 3
		case follows > 0 && !strings.HasPrefix(line, "==="):
			follows--
		default:
			continue
		}
		if runes := []rune(line); len(runes) > mostColumns {
			line = string(runes[:mostColumns]) + "…"
		}
		lines = append(lines, line)
		if len(lines) == mostLines {
			break
		}
	}
	return lines
}
