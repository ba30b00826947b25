// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestProgramCrashesAtOnce checks that several requests that crash the program at the same time
// cause only one restart.
func TestProgramCrashesAtOnce(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	p := newProgram([]string{"sh", "-c", `echo $$ >>"$PIDS" && exec sleep 1000`}, []string{"PIDS=" + pids})
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	for range 3 {
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { p.crash(10 * time.Millisecond) })
		}
		all.Wait()
		alive := 0
		if err := sandbox.Wait(t.Context(), 2*time.Minute, "it runs again", func() error {
			text, err := os.ReadFile(pids)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			alive = 0
			for _, line := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(line); err == nil && syscall.Kill(pid, 0) == nil {
					alive++
				}
			}
			if alive == 0 {
				return fmt.Errorf("no process of %q is alive", text)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if alive > 1 {
			t.Fatalf("%d processes run", alive)
		}
	}
}
