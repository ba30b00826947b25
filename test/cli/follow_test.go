// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// following is a run of kubectl tide that goes on.
type following struct {
	process *exec.Cmd
	lines   chan string
}

// follow starts a command that goes on, and ends it with the test.
func follow(t *testing.T, c command) *following {
	t.Helper()
	f := &following{process: c.process(), lines: make(chan string, 100)}
	stdout, err := f.process.StdoutPipe()
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
	go func() {
		defer close(f.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			f.lines <- scanner.Text()
		}
	}()
	return f
}

// await waits for a line like this.
func (f *following) await(t *testing.T, pattern string) {
	t.Helper()
	what := strings.Join(f.process.Args[1:], " ")
	for patience := time.After(framework.Patience); ; {
		select {
		case line, open := <-f.lines:
			switch {
			case regexp.MustCompile(pattern).MatchString(line):
				return
			case !open:
				t.Fatalf("kubectl %s ended, and did not print %s", what, pattern)
			}
		case <-patience:
			t.Fatalf("kubectl %s did not print %s", what, pattern)
		}
	}
}

// interrupt is Ctrl-C. It returns the exit code.
func (f *following) interrupt(t *testing.T) int {
	t.Helper()
	if err := f.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for range f.lines {
		continue
	}
	return code(t, f.process.Wait())
}
