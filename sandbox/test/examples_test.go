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

// The examples of tests in other languages pass with an operator that does its work, and fail
// with one that does not.
func TestExamples(t *testing.T) {
	for _, tc := range []struct {
		program string
		args    func(operator string) []string
		// says is what it prints if it passes, and without is that with a mistake.
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
			run := func(operator string) (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, tc.program, tc.args(operator)...)
				cmd.Env = append(os.Environ(), "OPERATOR="+operator, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
				// With all that it has started, if it hangs.
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
