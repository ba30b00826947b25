// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"
)

// TestRunLeavesNoProcess checks that all processes that a program has started are killed when the
// program exits, as in a container.
func TestRunLeavesNoProcess(t *testing.T) {
	s := sharedSandbox(t)
	const seconds = "86399.25" // This unusual duration identifies the test's processes.
	r := startRun(t, s, "--", "sh", "-c", "sleep "+seconds+" & setsid sleep "+seconds+" & sh -c 'setsid sleep "+seconds+" & sleep 0.1'; exit 5")
	if code := r.wait(); code != 5 {
		t.Errorf("exit code %d, want 5:\n%s", code, r.Output())
	}
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range all {
		if command, err := process.CmdLine(); err == nil && slices.Equal(command, []string{"sleep", seconds}) {
			t.Errorf("the process %d is left", process.PID)
			_ = syscall.Kill(process.PID, syscall.SIGKILL)
		}
	}
}
