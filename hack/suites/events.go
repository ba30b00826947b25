// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

func (e event) finished() bool { return e.Action == "pass" || e.Action == "fail" || e.Action == "skip" }

// test names a test of a suite, or a package if Name is empty.
type test struct{ suite, pkg, name string }

// String names the test without the path of the module.
func (t test) String() string {
	pkg := strings.TrimPrefix(strings.TrimPrefix(t.pkg, "tidekeeper.dev/tidekeeper"), "/")
	return strings.TrimSpace(pkg + " " + t.name)
}

// result is how a test ended, and after how many seconds. Of a test that failed or was
// skipped, output is what it printed.
type result struct {
	test
	action  string
	seconds float64
	output  string
}

// book has the results of the suites that run, and what is running. Several suites may write
// to it at the same time.
type book struct {
	mu  sync.Mutex
	out io.Writer
	now func() time.Time
	// outputs are those of tests that have not ended, and of packages.
	outputs map[test]*strings.Builder
	// running are the packages and tests that have begun, and when.
	running map[test]time.Time
	// paused are those of the running tests that wait for their turn.
	paused map[test]bool
	// ended are the top-level tests and the packages that have ended.
	ended []result
	// suites are the results of whole suites.
	suites []result
}

func newBook(out io.Writer) *book {
	return &book{out: out, now: time.Now, outputs: map[test]*strings.Builder{}, running: map[test]time.Time{}, paused: map[test]bool{}}
}

// read reads what a suite prints until it ends. It copies the lines of packages and of tests
// that fail.
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
		fmt.Fprint(b.out, line) // The words of the go command, or of make.
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

// keep keeps the output of a test until it is known whether it failed, and prints that of a
// package.
func (b *book) keep(key test, output string) {
	if key.name == "" && output != "PASS\n" && !strings.HasSuffix(output, "[no test files]\n") {
		fmt.Fprint(b.out, output)
	}
	if b.outputs[key] == nil {
		b.outputs[key] = &strings.Builder{}
	}
	b.outputs[key].WriteString(output)
}

// end notes the result of a test or a package.
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
	// What failed in a part of a test belongs to the test.
	if top, _, part := strings.Cut(key.name, "/"); part {
		if e.Action == "fail" {
			b.keep(test{key.suite, key.pkg, top}, output)
		}
		return
	}
	if e.Action == "pass" && key.name != "" {
		output = ""
	}
	b.ended = append(b.ended, result{key, e.Action, e.Elapsed, output})
}

// flush prints and returns the output of the tests that had not ended when their package did:
// one of them ended it.
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

// close notes as failed the packages of a suite whose tests did not end, as the process was
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

// suiteEnded notes the result of a whole suite.
func (b *book) suiteEnded(suite, action string, seconds float64, output string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suites = append(b.suites, result{test{suite: suite}, action, seconds, output})
}

// print prints a line between those of the suites.
func (b *book) print(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.out, format+"\n", args...)
}
