// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestKilledTestsLeaveNothing kills a test process that has started a sandbox and a manager, and
// checks that both exit and that the sandbox's files are removed.
func TestKilledTestsLeaveNothing(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report")
	command := exec.Command(os.Args[0], "-test.run=^TestToBeKilled$")
	command.Env = append(os.Environ(), reportVariable+"="+report)
	killed, err := sandbox.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = killed.Kill() })
	var pid int
	var dir string
	// A sandbox starts slowly on a busy machine.
	EventuallyWithin(t, 2*time.Minute, "the test is running", func() error {
		text, err := os.ReadFile(report)
		if err != nil {
			return fmt.Errorf("%w; it says: %s", err, killed.Output())
		}
		number, name, _ := strings.Cut(string(text), " ")
		pid, err = strconv.Atoi(number)
		dir = name
		return err
	})

	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "nothing is left", func() error {
		// The manager may be a zombie, which has no command line.
		if words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(words) > 0 {
			return fmt.Errorf("the manager, process %d, is still alive", pid)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is still there", dir)
		}
		return nil
	})
}

const reportVariable = "TO_BE_KILLED"

// TestToBeKilled is the test that TestKilledTestsLeaveNothing kills.
func TestToBeKilled(t *testing.T) {
	report := os.Getenv(reportVariable)
	if report == "" {
		return
	}
	cluster := Start(t, "--nodes=0")
	manager := cluster.StartManager(t)
	half := report + ".half"
	if err := errors.Join(os.WriteFile(half, fmt.Appendf(nil, "%d %s", manager.Pid(), cluster.Dir), 0o600), os.Rename(half, report)); err != nil {
		t.Fatal(err)
	}
	select {}
}
