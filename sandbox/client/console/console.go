// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package console tests documentation: it reads the commands of a page's console blocks, runs them
// in a single shell, and compares their output with the output that the page shows.
package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
)

// elided marks omitted lines, or the omitted end of a line, in a page's output.
const elided = "…"

// Step is a command in a Markdown page, with its line number and the output lines that the page
// shows.
type Step struct {
	Line    int
	Command string
	Want    []string
}

// Steps returns the commands in the console blocks of a Markdown page.
func Steps(page string) []Step {
	var all []Step
	console := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			console = line == "```console"
		case !console:
		case strings.HasPrefix(line, "$ "):
			all = append(all, Step{Line: i + 1, Command: strings.TrimPrefix(line, "$ ")})
		case len(all) > 0:
			all[len(all)-1].Want = append(all[len(all)-1].Want, line)
		}
	}
	return all
}

// varying lists patterns for the parts of an output line that differ between runs, with the
// replacements that are made before lines are compared.
var varying = []struct {
	find *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d( UTC|Z)`), "TIME"},
	{regexp.MustCompile(`\bv\d+\.\d+\.\d+\b`), "VERSION"},
	{regexp.MustCompile(`(?:/[\w.-]+)*/\.local/state/tidekeeper-sandbox`), "DIR"},
	{regexp.MustCompile(`\b\d+(\.\d+)? s\b`), "SECONDS"},
	{regexp.MustCompile(`(?m)\b\d+m?s(?: \([+-]\d+s\))?$|\b(?:\d+m)?\d+s(?: \([+-]\d+s\))?\b`), "DURATION"},
	{regexp.MustCompile(` +`), " "}, // Column widths depend on the replaced values.
}

// Constant replaces the parts of an output line that differ between runs, such as times and
// versions, with constant words.
func Constant(line string) string {
	for _, v := range varying {
		line = v.find.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// Shows reports whether the actual output lines match the lines that a page shows. Each line is
// first passed through constant, such as [Constant], to replace the parts that differ between runs.
func Shows(got, want []string, constant func(line string) string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == elided {
		for i := range len(got) + 1 {
			if Shows(got[i:], want[1:], constant) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && showsLine(got[0], want[0], constant) && Shows(got[1:], want[1:], constant)
}

func showsLine(got, want string, constant func(line string) string) bool {
	if begin, ok := strings.CutSuffix(want, elided); ok {
		return strings.HasPrefix(constant(got), constant(begin))
	}
	return constant(got) == constant(want)
}

// Shell is a bash process that runs commands in sequence. It is killed at the end of the test,
// together with its background jobs.
type Shell struct {
	in     io.Writer
	out    *bufio.Scanner
	marker string
}

// Start starts a shell whose working directory is dir.
func Start(t testing.TB, dir string) *Shell {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TZ=UTC", "BASH_ENV=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	return &Shell{in: in, out: bufio.NewScanner(out), marker: fmt.Sprintf("done-%d", os.Getpid())}
}

// watchEnded is the line that client-go logs if kubectl wait stops its watch while an event arrives. It
// says nothing about the command, which may have succeeded.
var watchEnded = regexp.MustCompile(`^[IW]\d{4} \S+ +\d+ reflector\.go:\d+\] "Warning: watch ended with error".*context canceled`)

// Run runs a command, and returns its output lines and its exit code. Lines that match watchEnded are
// left out.
func (s *Shell) Run(t testing.TB, command string) (lines []string, code int) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "%s\necho %s $?\n", command, s.marker); err != nil {
		t.Fatal(err)
	}
	for s.out.Scan() {
		line := s.out.Text()
		if rest, ok := strings.CutPrefix(line, s.marker+" "); ok {
			_, _ = fmt.Sscan(rest, &code)
			return lines, code
		}
		if !watchEnded.MatchString(line) {
			lines = append(lines, line)
		}
	}
	t.Fatalf("the shell has ended after: %s\n%s", command, strings.Join(lines, "\n"))
	return nil, 0
}

// Must runs commands, and fails the test if any of them fails.
func (s *Shell) Must(t testing.TB, commands ...string) {
	t.Helper()
	for _, command := range commands {
		if out, code := s.Run(t, command); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", command, code, strings.Join(out, "\n"))
		}
	}
}
