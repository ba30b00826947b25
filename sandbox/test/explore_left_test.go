// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestExploreKilled checks that a second explore in a directory is rejected and changes nothing
// while the first one runs there. If explore is killed, the operator and its child processes are
// terminated. The next explore removes the leftover files, but no files of the user.
func TestExploreKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users := filepath.Join(dir, "lab", "results.csv")
	if err := os.Mkdir(filepath.Dir(users), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stays := func() {
		t.Helper()
		if _, err := os.Stat(users); err != nil {
			t.Error(err)
		}
	}
	args := []string{"explore", "--dir", dir, "--workload", workloadFile(t, "nodes: 0\nsteps: [{run: 'true'}]"), "--quiet", "1s", "--settle", "10m", "--"}
	started := filepath.Join(dir, "started")
	takeTurn(t)
	// The operator has one child in its own process group and another child in a new session.
	first, err := client.Start(exec.Command(binary, append(args, "sh", "-c",
		`exec >/dev/null 2>&1; sleep 1000 & one=$!; setsid sleep 1000 & echo $$ $one $! >>"$0"; wait`, started)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Kill() })
	var operator []int
	waitFor(t, 5*time.Minute, func() string {
		text, _ := os.ReadFile(started)
		if !strings.HasSuffix(string(text), "\n") {
			return "the operator has not started:\n" + first.Output()
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			operator = append(operator, pid)
		}
		return ""
	})
	cannotBeSteered(t, first.Pid())
	lab := labs(t, dir)
	if second := command(t, append(args, "false")...); second.code != 1 || !strings.Contains(second.stderr, fmt.Sprintf("process %d plays there: wait until it has ended", first.Pid())) {
		t.Errorf("a second one: exit code %d\n%s%s", second.code, second.stdout, second.stderr)
	}
	stays()
	if now := labs(t, dir); len(lab) != 1 || len(now) != 1 || now[0] != lab[0] {
		t.Errorf("after that there are %q, and before %q", now, lab)
	}
	if err := first.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	waitGone(t, operator)
	if third := command(t, append(args, "false")...); third.code != 1 || !strings.Contains(third.stderr, "the operator exited (exit status 1) in a run without faults") {
		t.Errorf("the next one: exit code %d\n%s%s", third.code, third.stdout, third.stderr)
	}
	if now := labs(t, dir); len(now) != 0 {
		t.Errorf("left are %q", now)
	}
	stays()
}

// cannotBeSteered fails the test if the process serves a fault proxy's control API on a TCP port,
// to which any local user could connect.
func cannotBeSteered(t *testing.T, pid int) {
	t.Helper()
	process, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	open, err := process.FileDescriptorTargets()
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	ports := 0
	for line := range strings.Lines(string(sockets)) {
		const address, state, listens, inode = 1, 3, "0A", 9
		fields := strings.Fields(line)
		if len(fields) <= inode || fields[state] != listens || !slices.Contains(open, "socket:["+fields[inode]+"]") {
			continue
		}
		_, hexadecimal, _ := strings.Cut(fields[address], ":")
		port, err := strconv.ParseUint(hexadecimal, 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		ports++
		for _, scheme := range []string{"http", "https"} {
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			response, err := client.Get(fmt.Sprintf("%s://127.0.0.1:%d/rules", scheme, port))
			if err != nil {
				continue
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				t.Errorf("%s: port %d has the rules of a proxy: %s", scheme, port, text)
			}
		}
	}
	if ports == 0 {
		t.Error("it listens on no port: where is its proxy?")
	}
}

// labs returns the directories in dir in which explore runs its sandboxes.
func labs(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "sandbox-lab-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestExploreHangup checks that explore cleans up when its terminal is closed, just as it does
// after Ctrl-C.
func TestExploreHangup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	takeTurn(t)
	run, err := client.Start(exec.Command(binary, "explore", "--dir", dir, "--workload", workloadFile(t, "nodes: 0\nsteps: [{run: 'true'}]"), "--", "sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Kill() })
	waitFor(t, 5*time.Minute, func() string {
		if strings.Contains(run.Output(), "Installing.") {
			return ""
		}
		return "it has written only " + run.Output()
	})
	if err := run.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code, err := run.Wait(t.Context()); code != 1 || err != nil {
		t.Errorf("exit code %d, %v\n%s", code, err, run.Output())
	}
	if now := labs(t, dir); len(now) != 0 {
		t.Errorf("left are %q", now)
	}
}
