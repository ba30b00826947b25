// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command slowest reads what `go test -json` prints. It prints what go test
// prints without -v, and at the end the ten slowest tests. With --record FILE, it writes
// what came of the tests into the file, and with --kubernetes, of which release.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// count is how many tests are listed.
const count = 10

func main() {
	file := flag.String("record", "", "the file for what came of the tests")
	kubernetes := flag.String("kubernetes", "", "the release of Kubernetes that the record names, such as v1.34.4")
	slice := flag.Bool("slice", false, "record that only a slice of the tests was run")
	flag.Parse()
	tests, failed, err := report(os.Stdin, os.Stdout)
	if err == nil && *file != "" {
		err = newRecord(*kubernetes, *slice, time.Now(), tests, failed).write(*file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// test names a test, or a package if Name is empty.
type test struct{ pkg, name string }

// result is how a test ended, and after how long.
type result struct {
	test
	action  string
	seconds float64
}

// report copies the output of packages and of tests that fail. It returns the tests that
// ended, the slowest first, and whether anything failed, which a package has that did not end.
func report(in io.Reader, out io.Writer) (tests []result, failed bool, err error) {
	outputs := map[test]*strings.Builder{}
	running := map[string]bool{} // By package.
	lines := bufio.NewReader(in)
	for {
		line, readErr := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			fmt.Fprint(out, line) // The go command's own words.
		default:
			failed = e.print(out, outputs) || failed
			if e.Test == "" && (e.Action == "start" || e.finished()) {
				running[e.Package] = !e.finished()
			}
			if e.finished() && e.Test != "" && !strings.Contains(e.Test, "/") {
				tests = append(tests, result{test{e.Package, e.Test}, e.Action, e.Elapsed})
			}
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return tests, failed, readErr
		}
	}
	for pkg, still := range running {
		if still {
			fmt.Fprintf(out, "%s: its tests did not end\n", pkg)
			failed = true
		}
	}
	slices.SortStableFunc(tests, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintln(out, "The slowest tests:")
	for _, s := range tests[:min(count, len(tests))] {
		fmt.Fprintf(out, "%8.1f s  %s  %s\n", s.seconds, strings.TrimPrefix(s.pkg, "tidekeeper.dev/tidekeeper/"), s.name)
	}
	return tests, failed, nil
}

func (e event) finished() bool { return e.Action == "pass" || e.Action == "fail" || e.Action == "skip" }

// print prints what an event adds to the output, and reports whether it is a
// failure. The output of a test is kept until it is known whether it failed.
func (e event) print(out io.Writer, outputs map[test]*strings.Builder) bool {
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		if e.Test == "" {
			if e.Output != "PASS\n" {
				fmt.Fprint(out, e.Output)
			}
			return false
		}
		if outputs[key] == nil {
			outputs[key] = &strings.Builder{}
		}
		outputs[key].WriteString(e.Output)
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "build-fail":
		return true
	case "pass", "skip":
		delete(outputs, key)
	case "fail":
		if e.Test == "" {
			flush(out, outputs, e.Package)
		} else if kept := outputs[key]; kept != nil {
			fmt.Fprint(out, kept)
			delete(outputs, key)
		}
		return true
	}
	return false
}

// flush prints the output of the tests that had not ended when their package
// did: one of them ended it.
func flush(out io.Writer, outputs map[test]*strings.Builder, pkg string) {
	for key, kept := range outputs {
		if key.pkg == pkg {
			fmt.Fprint(out, kept)
			delete(outputs, key)
		}
	}
}
