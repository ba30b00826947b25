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

// A sandbox with an owner is there for as long as that is, and nothing is left of
// it when the owner was killed: no process, and no file. What is kept of one that is
// stopped, TestStateIsKeptUnlessFresh shows.
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
	s := sandbox{filepath.Join(t.TempDir(), "data")}
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

func TestOwnerMustLive(t *testing.T) {
	owner := exec.Command("true")
	if err := owner.Run(); err != nil {
		t.Fatal(err)
	}
	pid := owner.Process.Pid
	for _, detach := range []string{"--detach=true", "--detach=false"} {
		s := sandbox{filepath.Join(t.TempDir(), "data")}
		wantError(t, s.run(t, "up", detach, fmt.Sprint("--owner=", pid)), fmt.Sprintf("--owner %d: no such process", pid))
		if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the data directory was made (%v)", detach, err)
		}
	}
}
