// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
)

// ended returns a process that has exited and is not restarted.
func ended(t *testing.T) *process {
	t.Helper()
	p := &process{operator: &operator.Processes{Operator: &operator.Operator{Command: []string{"sh", "-c", "exit 3"}, Output: &operator.Output{}}}}
	if err := p.operator.Start(); err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for len(p.operator.Ends()) == 0 {
		select {
		case <-look.C:
		case <-t.Context().Done():
			t.Fatal("it has not ended")
		}
	}
	p.operator.Close()
	return p
}

// TestExcusedExits checks that an exit is a failure unless it occurs during a fault that breaks
// connections.
func TestExcusedExits(t *testing.T) {
	p := ended(t)
	if got := p.failures(); len(got) == 0 || !strings.HasPrefix(got[0], judge.EndedByItself+"exit status 3") {
		t.Errorf("the failures are %q", got)
	}
	if p.mark(); len(p.failures()) == 0 {
		t.Error("an exit is excused without a fault")
	}
	if p.breaks = true; len(p.failures()) > 0 {
		t.Errorf("with a fault that breaks connections: %q", p.failures())
	}
	if p.mark(); len(p.failures()) > 0 || p.breaks {
		t.Errorf("after that fault: %q, breaks connections: %t", p.failures(), p.breaks)
	}
	fmt.Fprintln(p.operator.Output, "panic: oh")
	fmt.Fprint(p.operator.Output, "\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3\nexit\n")
	if got := p.failures(); len(got) != 1 || !strings.HasPrefix(got[0], "panic: oh, in ") {
		t.Errorf("after a panic: %q", got)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	p.operator.Close()
	if p.excused != 0 {
		t.Errorf("of a new process, %d exits are excused", p.excused)
	}
}
