// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// TestProcessLog checks that the log has the name of the process, distinguishes kills from other ends
// of processes, and contains the suspensions of all processes of an operator.
func TestProcessLog(t *testing.T) {
	start := func(log *observe.ProcessLog, command ...string) *Operator {
		t.Helper()
		o := &Operator{Command: command, Path: os.Getenv("PATH"), Output: &Output{}, Log: log, LogName: "shop"}
		if err := o.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.Close)
		return o
	}
	for _, tc := range []struct {
		name string
		do   func(*observe.ProcessLog)
		want []observe.ProcessChange
	}{
		{"a kill", func(log *observe.ProcessLog) { start(log, "sleep", "1000").Kill() }, []observe.ProcessChange{observe.Started, observe.Killed}},
		{"a restart", func(log *observe.ProcessLog) {
			o := start(log, "sleep", "1000")
			o.Kill()
			if err := o.Start(); err != nil {
				t.Error(err)
			}
		}, []observe.ProcessChange{observe.Started, observe.Killed, observe.Started}},
		{"an end by itself", func(log *observe.ProcessLog) { start(log, "false").AwaitEnd(time.Minute) }, []observe.ProcessChange{observe.Started, observe.Exited}},
		{"a suspension, and a second process", func(log *observe.ProcessLog) {
			o := start(log, "sleep", "1000")
			for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
				if err := o.Signal(signal); err != nil {
					t.Error(err)
				}
			}
			second := o.Another()
			if err := second.Start(); err != nil {
				t.Error(err)
			}
			second.Close()
		}, []observe.ProcessChange{observe.Started, observe.Suspended, observe.Resumed, observe.Started, observe.Killed}},
	} {
		log := &observe.ProcessLog{}
		began := time.Now()
		tc.do(log)
		var got []observe.ProcessChange
		for _, e := range log.Since(began) {
			if got = append(got, e.What); e.Of != "shop" {
				t.Errorf("%s: it is logged as %q", tc.name, e.Of)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if late := log.Since(time.Now().Add(time.Hour)); len(late) > 0 {
			t.Errorf("%s: %v is yet to come", tc.name, late)
		}
	}
}
