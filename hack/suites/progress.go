// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// longest is the number of running tests that the progress line lists.
const longest = 2

// progress returns the progress line: the numbers of finished suites, packages and tests, and the
// names of the tests that have been running the longest.
func (b *book) progress(suites int, since time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	packages, tests, failed, skipped := 0, 0, 0, 0
	for _, r := range b.ended {
		switch {
		case r.name == "" && r.action != "skip":
			packages++
		case r.name == "":
		case r.action == "pass":
			tests++
		case r.action == "fail":
			failed++
		case r.action == "skip":
			skipped++
		}
	}
	text := fmt.Sprintf("%s: %d of %d suites, %d packages, %d tests passed, %d failed, %d skipped",
		clock(now.Sub(since)), len(b.suites), suites, packages, tests, failed, skipped)
	if names := b.runningLongest(now); len(names) > 0 {
		text += "; running: " + strings.Join(names, ", ")
	}
	return text
}

// runningLongest returns the names of the top-level tests that have been running the longest.
func (b *book) runningLongest(now time.Time) []string {
	var running []test
	for key := range b.running {
		if key.name != "" && !strings.Contains(key.name, "/") && !b.paused[key] {
			running = append(running, key)
		}
	}
	slices.SortFunc(running, func(x, y test) int {
		return cmp.Or(b.running[x].Compare(b.running[y]), cmp.Compare(x.String(), y.String()))
	})
	var names []string
	for _, key := range running[:min(longest, len(running))] {
		names = append(names, fmt.Sprintf("%s %s", key, clock(now.Sub(b.running[key]))))
	}
	return names
}

// clock formats a duration in whole seconds, such as 45s or 7m31s.
func clock(d time.Duration) string { return d.Round(time.Second).String() }

// screen is a writer that keeps a progress line below the output. On a terminal, the progress line
// is rewritten.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	width    int
	last     string
	// partial is true if the output does not end with a newline.
	partial bool
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb", width: 100}
}

// Write writes output above the progress line.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	n, err := s.out.Write(text)
	s.partial = !bytes.HasSuffix(text, []byte("\n"))
	if s.last != "" && !s.partial {
		fmt.Fprint(s.out, s.last)
	}
	return n, err
}

// show prints a progress line. On a terminal, it replaces the previous progress line.
func (s *screen) show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return
	}
	if s.partial {
		return
	}
	if runes := []rune(line); len(runes) > s.width {
		line = string(runes[:s.width-1]) + "…"
	}
	s.last = line
	fmt.Fprint(s.out, "\r\x1b[K"+line)
}

// clear removes the progress line from a terminal.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	s.last = ""
}

// interval returns the time between two progress lines.
func (s *screen) interval() time.Duration {
	if s.terminal {
		return time.Second
	}
	return time.Minute
}
