// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package child_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client"
	"tidekeeper.dev/tidekeeper/sandbox/client/child"
)

// TestChildEndsWithItsParent checks that a child is killed when its parent process is killed.
func TestChildEndsWithItsParent(t *testing.T) {
	if os.Getenv("CHILD_TEST") != "" {
		command := exec.Command("sleep", "600")
		if err := child.Start(command); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("child %d.\n", command.Process.Pid)
		select {}
	}
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), "CHILD_TEST=1")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(parent); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(output, "child %d.", &pid); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if err := client.Wait(t.Context(), 2*time.Minute, fmt.Sprintf("process %d has ended", pid), func() error {
		// A zombie process, for which its parent has not yet waited, counts as terminated.
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(text), ") Z ") {
			return errors.New(string(text))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
