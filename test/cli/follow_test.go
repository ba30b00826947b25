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

// following is a kubectl tide process that keeps running.
type following struct {
	process        *exec.Cmd
	stdout, stderr lines
	// rest lists the remaining lines on stdout, which the test has not awaited, once the command
	// has exited.
	rest []string
}

// follow starts a command that keeps running, and stops it when the test ends.
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

// followTo is [follow] with the given outlet as the command's stdout.
func followTo(t *testing.T, c command, stdout *outlet) *following {
	t.Helper()
	process := c.process()
	process.Stdout = stdout.stdout
	return started(t, process)
}

// started starts a process, and stops it when the test ends.
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

// await waits for a line on stdout that matches `pattern`.
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

// lines is a channel that receives the lines of an output stream.
type lines chan string

func linesOf(out io.Reader) lines {
	l := make(lines, 10000) // The buffer is large, so that the command is not blocked if a test reads no lines.
	go func() {
		defer close(l)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			l <- scanner.Text()
		}
	}()
	return l
}

// await returns all lines up to the nth match of `pattern`.
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

// awaitAll returns the lines up to the point where each pattern has matched a line, in any order.
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

// until returns all lines up to the first line for which `isLast` returns true.
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
