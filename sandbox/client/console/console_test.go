// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/client/console"
)

// TestShows checks that Shows rejects output that differs from the page.
func TestShows(t *testing.T) {
	lines := func(text string) []string { return strings.Split(text, "\n") }
	for _, tt := range []struct {
		name, got, want string
		shows           bool
	}{
		{"the same", "a\nb", "a\nb", true},
		{"another", "a\nc", "a\nb", false},
		{"more", "a\nb\nc", "a\nb", false},
		{"more, left out", "a\nb\nc", "a\n…", true},
		{"in the middle", "a\nb\nc\nd", "a\n…\nd", true},
		{"none left out", "a\nd", "a\n…\nd", true},
		{"the wrong end", "a\nb\nc", "a\n…\nd", false},
		{"another time", "at 2026-11-22T07:24:57Z, 7s", "at 2027-01-02T00:00:00Z, 12s", true},
		{"the end of a line left out", "a bc\nd", "a b…\nd", true},
		{"the start of a line is another", "a cc", "a b…", false},
		{"another percentage", "worker  18%", "worker  19%", false},
	} {
		if got := console.Shows(lines(tt.got), lines(tt.want), console.Constant); got != tt.shows {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestPageInShell checks that a shell keeps its variables and working directory between commands,
// and that Steps returns only the commands of console blocks.
func TestPageInShell(t *testing.T) {
	const page = "# Page\n\n```console\n$ cd inner && name=world\n$ echo hello $name; pwd | grep -o inner\nhello world\ninner\n```\n\n```sh\n$ false\n```\n\n```console\n$ (exit 3)\n```\n"
	dir := t.TempDir()
	sh := console.Start(t, dir)
	sh.Must(t, "mkdir inner")
	steps := console.Steps(page)
	if len(steps) != 3 || steps[1].Line != 5 {
		t.Fatalf("the page has the commands %+v", steps)
	}
	var codes []int
	for _, step := range steps {
		got, code := sh.Run(t, step.Command)
		if !console.Shows(got, step.Want, console.Constant) {
			t.Errorf("$ %s\n%s\nthe page shows:\n%s", step.Command, strings.Join(got, "\n"), strings.Join(step.Want, "\n"))
		}
		codes = append(codes, code)
	}
	if !slices.Equal(codes, []int{0, 0, 3}) {
		t.Errorf("the commands have ended with %v", codes)
	}
}

// TestRunLeavesOutEndedWatches checks that the shell leaves out the warning about a watch that a command
// stopped itself, and no other line of a log.
func TestRunLeavesOutEndedWatches(t *testing.T) {
	const ended = `I1129 22:28:44.414635   20753 reflector.go:664] "Warning: watch ended with error" reflector="k8s.io/client-go@v0.37.2/tools/cache/reflector.go:343" err="%s"`
	stopped := fmt.Sprintf(ended, `an error on the server (\"unable to decode an event from the watch stream: context canceled\")`)
	lost := fmt.Sprintf(ended, "connection refused")
	sh := console.Start(t, t.TempDir())
	got, _ := sh.Run(t, fmt.Sprintf("cat >&2 <<'END'\n%s\n%s\ncondition met\nEND", stopped, lost))
	if want := []string{lost, "condition met"}; !slices.Equal(got, want) {
		t.Errorf("got the lines\n%s", strings.Join(got, "\n"))
	}
}
