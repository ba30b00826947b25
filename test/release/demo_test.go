// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// address matches the address of the demo's page in the demo's output. The output continues with a
// one-time code.
var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)

// TestDemoFromItsArchive checks that the demo in the release archive needs no other program, serves
// its page, and leaves nothing behind after Ctrl-C.
func TestDemoFromItsArchive(t *testing.T) {
	dir := unpack(t, "tidekeeper-demo")
	home, nothing := t.TempDir(), t.TempDir()
	// t.TempDir is not used because socket paths must be short.
	temporary, err := os.MkdirTemp("", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "sandbox"), "demo")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + home, "PATH=" + nothing, "TMPDIR=" + temporary}
	// A terminal sends Ctrl-C to all processes of the process group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })

	up, page, printed := false, "", ""
	for lines := bufio.NewScanner(out); (!up || page == "") && lines.Scan(); {
		printed += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "It is up after ") {
			up = true
			t.Logf("%s It took %s.", lines.Text(), time.Since(start))
		}
		if found := address.FindString(lines.Text()); found != "" {
			page = found
		}
	}
	if !up || page == "" {
		t.Fatalf("there is no page:\n%s", printed)
	}
	answer, err := http.Get(page) //nolint:noctx // The request needs no timeout because the demo is stopped when the test ends.
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "Tidekeeper") {
		t.Errorf("the page is %s, %v:\n%.300s", answer.Status, err, text)
	}
	// The control plane, the manager and the page are separate processes.
	if running := processesOf(t, dir); len(running) < 4 {
		t.Errorf("only these run: %q", running)
	}

	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s%s", err, printed, rest)
	}
	if running := processesOf(t, dir); len(running) > 0 {
		t.Errorf("still running: %q", running)
	}
	for _, folder := range []string{home, temporary, nothing} {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%s has %v, %v", folder, left, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 7 {
		t.Errorf("beside four programs and three texts there is something in %v, %v", files, err)
	}
}

// processesOf returns the running processes whose executable is in `dir`.
func processesOf(t *testing.T, dir string) (running []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if program, err := os.Readlink(link); err == nil && strings.HasPrefix(program, dir+"/") {
			running = append(running, link+" "+program)
		}
	}
	return running
}
