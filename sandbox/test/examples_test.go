// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestExamples checks that the example tests in other languages pass for a correct operator and
// fail for an incorrect one.
func TestExamples(t *testing.T) {
	for _, tc := range []struct {
		program string
		args    func(operator string) []string
		// says is part of the output if the example passes; mistake is a mistake to put into the
		// operator, and without is part of the output of the example that then fails.
		says, mistake, without string
	}{
		{"sh", func(operator string) []string {
			return append([]string{"../examples/lost_answer.sh"}, strings.Fields(operator)...)
		}, "It survives a lost answer.", "gives-up", "the order is new"},
		{"python3", func(string) []string { return []string{"../examples/crash_test.py"} }, "OK", "done-first", "FAILED"},
	} {
		t.Run(tc.program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tc.program); err != nil {
				t.Skipf("SKIPPED: %v", err)
			}
			takeTurn(t)
			run := func(operator string) (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, tc.program, tc.args(operator)...)
				cmd.Env = append(os.Environ(), "OPERATOR="+operator, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
				// If the example hangs, kill its entire process group.
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := run(shop(t)); err != nil || !strings.Contains(out, tc.says) {
				t.Errorf("%v\n%s", err, out)
			}
			if out, err := run(shop(t) + " --mistake=" + tc.mistake); err == nil || !strings.Contains(out, tc.without) {
				t.Errorf("with the mistake %s it passes: %v\n%s", tc.mistake, err, out)
			}
		})
	}
}
