// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProgramEndsWithItsStarter checks that a program that a process executes after endWith is killed
// together with the process that started it. The starter and the program are this test, too.
func TestProgramEndsWithItsStarter(t *testing.T) {
	const role, starter = "EXEC_TEST_ROLE", "EXEC_TEST_STARTER"
	again := func(as string, stdout *os.File) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), role+"="+as, fmt.Sprintf("%s=%d", starter, os.Getpid()))
		cmd.Stdout, cmd.Stderr = stdout, os.Stderr
		return cmd
	}
	switch os.Getenv(role) {
	case "starter":
		if err := again("program", os.Stdout).Run(); err != nil {
			t.Fatal(err)
		}
		return
	case "program":
		pid, err := strconv.Atoi(os.Getenv(starter))
		if err != nil {
			t.Fatal(err)
		}
		if err := endWith(os.Getpid()); err == nil {
			t.Error("another process counts as the starter")
		}
		if err := endWith(pid); err != nil {
			t.Fatal(err)
		}
		t.Fatal(syscall.Exec("/bin/sh", []string{"sh", "-c", "echo ready; exec sleep 1000"}, os.Environ()))
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	first := again("starter", in)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	// From here on, the pipe ends when all processes that could write to it have ended.
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); strings.TrimSpace(line) != "ready" {
		t.Fatalf("the program says %q, %v", line, err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if err := out.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil {
		t.Errorf("the program has outlived its starter: %v, after it wrote %q", err, rest)
	}
}
