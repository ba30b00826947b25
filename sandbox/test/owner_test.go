// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestNothingOutlivesTheOwner checks that no process and no file of a sandbox is left after its
// owner process is killed. TestStateIsKeptUnlessFresh covers the files that remain after a normal
// stop.
func TestNothingOutlivesTheOwner(t *testing.T) {
	owner := exec.Command("sleep", "infinity")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = owner.Process.Kill()
		_ = owner.Wait()
	}
	t.Cleanup(kill)
	s := sandbox{dir: filepath.Join(t.TempDir(), "data")}
	t.Cleanup(func() { s.run(t, "down") })
	s.must(t, "up", "--detach", "--nodes=1", fmt.Sprint("--owner=", owner.Process.Pid))
	pids := s.pids(t)

	kill()
	waitGone(t, pids)
	waitFor(t, 10*time.Second, func() string {
		if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("the data directory is still there (%v)", err)
		}
		return ""
	})
}

// TestFilesOfOthersOutliveTheOwner checks that files that other programs put into the sandbox's
// directory are kept.
func TestFilesOfOthersOutliveTheOwner(t *testing.T) {
	owner := exec.Command("sleep", "infinity")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = owner.Process.Kill()
		_ = owner.Wait()
	}
	t.Cleanup(kill)
	s := sandbox{dir: t.TempDir()}
	t.Cleanup(func() { s.run(t, "down") })
	s.must(t, "up", "--detach", "--nodes=0", fmt.Sprint("--owner=", owner.Process.Pid))
	if err := os.Mkdir(filepath.Join(s.dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	pids := s.pids(t)
	kill()
	waitGone(t, pids)
	waitFor(t, 10*time.Second, func() string {
		if got := entries(t, s.dir); got != "mine" {
			return "left in the data directory: " + got
		}
		return ""
	})
}

func TestOwnerMustLive(t *testing.T) {
	owner := exec.Command("true")
	if err := owner.Run(); err != nil {
		t.Fatal(err)
	}
	pid := owner.Process.Pid
	for _, detach := range []string{"--detach=true", "--detach=false"} {
		s := sandbox{dir: filepath.Join(t.TempDir(), "data")}
		wantError(t, s.run(t, "up", detach, fmt.Sprint("--owner=", pid)), fmt.Sprintf("--owner %d: no such process", pid))
		if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the data directory was created (%v)", detach, err)
		}
	}
}
