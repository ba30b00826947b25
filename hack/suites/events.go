// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is an output line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

func (e event) finished() bool { return e.Action == "pass" || e.Action == "fail" || e.Action == "skip" }

// test identifies a test of a suite, or an entire package if name is empty.
type test struct{ suite, pkg, name string }

// String returns the test's package and name, without the module's path.
func (t test) String() string {
	pkg := strings.TrimPrefix(strings.TrimPrefix(t.pkg, "tidekeeper.dev/tidekeeper"), "/")
	return strings.TrimSpace(pkg + " " + t.name)
}

// result is the result of a test, a package or a suite. output is the output of a failed or skipped
// test.
type result struct {
	test
	action  string
	seconds float64
	output  string
	// cpu is the processor time of a suite's processes, in seconds. It includes all processes that
	// their parents waited for.
	cpu float64
}

// book collects the results of all suites and keeps track of the running tests. Several suites may
// report to it at the same time.
type book struct {
	mu  sync.Mutex
	out io.Writer
	now func() time.Time
	// outputs holds the output of unfinished packages and tests.
	outputs map[test]*strings.Builder
	// running maps unfinished packages and tests to their start times.
	running map[test]time.Time
	// paused is the set of running tests that called t.Parallel and wait for their turn.
	paused map[test]bool
	// ended lists the results of top-level tests and packages.
	ended []result
	// lacking maps suites to the tests and packages that this machine lacks something for, with the
	// reason of each.
	lacking map[string][]string
	// suites lists the results of entire suites.
	suites []result
}

// lack matches the message of a test or package that is skipped for something that the machine
// lacks.
var lack = regexp.MustCompile(`(?m)^\s*(\S+\.go:\d+: )?SKIPPED: `)

func newBook(out io.Writer) *book {
	return &book{out: out, now: time.Now, outputs: map[test]*strings.Builder{}, running: map[test]time.Time{}, paused: map[test]bool{}, lacking: map[string][]string{}}
}

// read processes a suite's output until the suite ends. It prints the output of packages and of
// failed tests.
func (b *book) read(suite string, in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			b.line(suite, line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	b.close(suite)
	return nil
}

func (b *book) line(suite, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(b.out, line) // The line was written by the go command or make, not by a test.
		return
	}
	key := test{suite, e.Package, e.Test}
	switch e.Action {
	case "start", "run", "cont":
		b.running[key] = b.now()
		delete(b.paused, key)
	case "pause":
		b.paused[key] = true
	case "output":
		b.keep(key, e.Output)
	case "build-output":
		fmt.Fprint(b.out, e.Output)
	case "build-fail":
		b.ended = append(b.ended, result{test: test{suite, e.ImportPath, ""}, action: "fail", output: "it does not compile\n"})
	}
	if e.finished() {
		b.end(key, e)
	}
}

// keep stores a test's output until the test has finished. It prints a package's output
// immediately.
func (b *book) keep(key test, output string) {
	if key.name == "" && output != "PASS\n" && !strings.HasSuffix(output, "[no test files]\n") {
		fmt.Fprint(b.out, output)
	}
	if b.outputs[key] == nil {
		b.outputs[key] = &strings.Builder{}
	}
	b.outputs[key].WriteString(output)
}

// end records the result of a test or a package.
func (b *book) end(key test, e event) {
	output := ""
	if kept := b.outputs[key]; kept != nil {
		output = kept.String()
	}
	delete(b.outputs, key)
	delete(b.running, key)
	if e.Action == "fail" {
		if key.name == "" {
			output += b.flush(key)
		} else {
			fmt.Fprint(b.out, output)
		}
	}
	if skipped := e.Action == "skip" || e.Action == "pass" && key.name == ""; skipped && lack.MatchString(output) {
		b.lacking[key.suite] = append(b.lacking[key.suite], fmt.Sprintf("%s: %s", key, reason(output)))
	}
	// Add a subtest's failure to the output of its top-level test.
	if top, _, part := strings.Cut(key.name, "/"); part {
		if e.Action == "fail" {
			b.keep(test{key.suite, key.pkg, top}, output)
		}
		return
	}
	if e.Action == "pass" && key.name != "" {
		output = ""
	}
	b.ended = append(b.ended, result{test: key, action: e.Action, seconds: e.Elapsed, output: output})
}

// flush prints and returns the output of a package's tests that had not finished when the package
// ended. One of them made the process exit.
func (b *book) flush(pkg test) string {
	all := ""
	for key, kept := range b.outputs {
		if key.suite == pkg.suite && key.pkg == pkg.pkg && key.name != "" {
			fmt.Fprint(b.out, kept)
			all += kept.String()
			delete(b.outputs, key)
			delete(b.running, key)
		}
	}
	return all
}

// close records a failure for each package of a suite with unfinished tests. Their process was
// killed.
func (b *book) close(suite string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.running {
		if key.suite != suite {
			continue
		}
		delete(b.running, key)
		if key.name == "" {
			output := b.flush(key)
			fmt.Fprintf(b.out, "%s: its tests did not end\n", key.pkg)
			b.ended = append(b.ended, result{test: key, action: "fail", output: output + "its tests did not end\n"})
		}
	}
}

// skipped returns the tests and packages of a suite that this machine lacks something for, and
// reports whether the suite has skipped tests and ran none.
func (b *book) skipped(suite string) (lacking []string, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lacking = slices.Clone(b.lacking[suite])
	all = len(lacking) > 0
	for _, r := range b.ended {
		if r.suite != suite || r.name == "" {
			continue
		}
		if r.action != "skip" {
			return lacking, false
		}
		all = true
	}
	return lacking, all
}

// suiteEnded records the result of an entire suite.
func (b *book) suiteEnded(suite, action string, seconds float64, output string) {
	b.add(result{test: test{suite: suite}, action: action, seconds: seconds, output: output})
}

// add adds a suite's result.
func (b *book) add(suite result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suites = append(b.suites, suite)
}

// print prints a line without interleaving it with the suites' output.
func (b *book) print(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.out, format+"\n", args...)
}
