// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// following is a run of kubectl tide that keeps running.
type following struct {
	process        *exec.Cmd
	stdout, stderr lines
	// rest are the lines on stdout that were not awaited before the command ended.
	rest []string
}

// follow starts a command that keeps running, and stops it at the end of the test.
func follow(t *testing.T, c command) *following {
	t.Helper()
	process := c.process()
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	f := started(t, process)
	f.stdout = linesOf(stdout)
	return f
}

// followTo is follow with the output to an outlet.
func followTo(t *testing.T, c command, stdout *outlet) *following {
	t.Helper()
	process := c.process()
	process.Stdout = stdout.stdout
	return started(t, process)
}

// started starts a process, and stops it at the end of the test.
func started(t *testing.T, process *exec.Cmd) *following {
	t.Helper()
	f := &following{process: process}
	stderr, err := f.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f.process.ProcessState == nil {
			_ = f.process.Process.Kill()
			_ = f.process.Wait()
		}
	})
	f.stderr = linesOf(stderr)
	return f
}

// await waits for a line on stdout that matches the pattern.
func (f *following) await(t *testing.T, pattern string) {
	t.Helper()
	f.stdout.await(t, 1, pattern)
}

// interrupt sends Ctrl-C and returns the exit code.
func (f *following) interrupt(t *testing.T) int {
	t.Helper()
	if err := f.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for line := range f.stdout {
		f.rest = append(f.rest, line)
	}
	for range f.stderr {
		continue
	}
	return code(t, f.process.Wait())
}

// lines are the lines of an output, as they arrive.
type lines chan string

func linesOf(out io.Reader) lines {
	l := make(lines, 10000) // enough for a test that does not read them
	go func() {
		defer close(l)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			l <- scanner.Text()
		}
	}()
	return l
}

// await returns the lines up to the nth one that matches the pattern.
func (l lines) await(t *testing.T, n int, pattern string) []string {
	t.Helper()
	if n <= 0 {
		return nil
	}
	expression := regexp.MustCompile(pattern)
	return l.until(t, pattern, func(line string) bool {
		if expression.MatchString(line) {
			n--
		}
		return n <= 0
	})
}

// awaitAll returns the lines up to the one with which there is one for each pattern, in any order.
func (l lines) awaitAll(t *testing.T, patterns ...string) []string {
	t.Helper()
	missing := make([]*regexp.Regexp, 0, len(patterns))
	for _, pattern := range patterns {
		missing = append(missing, regexp.MustCompile(pattern))
	}
	return l.until(t, strings.Join(patterns, " and "), func(line string) bool {
		missing = slices.DeleteFunc(missing, func(r *regexp.Regexp) bool { return r.MatchString(line) })
		return len(missing) == 0
	})
}

// until returns the lines up to the one with which a test has all that it waits for.
func (l lines) until(t *testing.T, what string, isLast func(string) bool) []string {
	t.Helper()
	var came []string
	for patience := time.After(framework.Patience); ; {
		select {
		case line, open := <-l:
			if !open {
				t.Fatalf("it ended without printing %s, but printed\n%s", what, strings.Join(came, "\n"))
			}
			came = append(came, line)
			if isLast(line) {
				return came
			}
		case <-patience:
			t.Fatalf("it did not print %s, but printed\n%s", what, strings.Join(came, "\n"))
		}
	}
}
