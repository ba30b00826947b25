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
	// slowest is the number of slow tests that the summary lists.
	slowest = 10
	// mostLines is the maximum number of lines that the summary repeats of a failure. mostColumns
	// is the maximum length of these lines. The first failures (their number is explained) are
	// repeated completely if they have at most mostExplained lines.
	mostLines, mostColumns   = 16, 300
	explained, mostExplained = 3, 300
)

// told matches the lines of a failure that the summary repeats: the test's messages, panics, data
// races, and the seed of a property test.
var told = regexp.MustCompile(`\.go:\d+: |^panic: |DATA RACE|rapid\.seed|--- FAIL|does not compile|did not end`)

// summary holds the results of a run of several suites.
type summary struct {
	passed, failed, skipped []result
	// packages lists the packages that failed without a failed test.
	packages []result
	suites   []result
	took     time.Duration
}

// ok reports whether no test, package or suite has failed.
func (s summary) ok() bool {
	return len(s.failed) == 0 && len(s.packages) == 0 && !slices.ContainsFunc(s.suites, func(r result) bool { return r.action == "fail" })
}

// summarize returns the summary of all recorded results.
func (b *book) summarize(took time.Duration) summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := summary{suites: slices.Clone(b.suites), took: took}
	blamed := map[test]bool{} // packages with a failed test
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

// ranElsewhere reports whether a test that one suite skipped ran in another suite.
func (s summary) ranElsewhere(t test) bool {
	return slices.ContainsFunc(slices.Concat(s.passed, s.failed), func(r result) bool { return r.pkg == t.pkg && r.name == t.name })
}

// write prints the summary: the slowest tests, the skipped tests with the reason, the failed tests
// with the command to run each of them alone, and the totals.
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
		fmt.Fprintln(out, "\nThe suites, with the processor time of each:")
		for _, r := range s.suites {
			fmt.Fprintf(out, "%8.0f s %8.0f s  %-8s %s\n", r.seconds, r.cpu, words[r.action], r.suite)
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

// message matches the source position that precedes a message of the package testing.
var message = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason returns the last message of a skipped test, which states why it was skipped.
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
			// The essence comes last, because only the end of a long log may be kept or read.
			if len(all) > mostLines {
				all = append(all, "in short:")
				all = append(all, lines...)
			}
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

// failedAlone returns the number of suites that failed without a failed test or package.
func (s summary) failedAlone() int {
	count := 0
	for _, r := range s.suites {
		if r.action == "fail" && r.output != "" {
			count++
		}
	}
	return count
}

// alone returns the make command that runs only the given test.
func alone(t test) string {
	if t.name == "" {
		return "make suite SUITE=" + t.suite
	}
	return fmt.Sprintf("make suite SUITE=%s RUN='^%s$'", t.suite, t.name)
}

// withoutMarks returns the lines of an output without the lines by which the package testing marks
// the running test.
func withoutMarks(output string) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "=== ") })
}

// essence returns the lines of an output that explain a failure. It returns only the first lines:
// later failures often result from the first failure, and the complete output was already printed.
func essence(output string) []string {
	var lines []string
	follows := 0 // number of lines after a message that are still repeated
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
