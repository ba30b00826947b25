// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package test tests the sandbox binary from the outside, through its command line.
package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/client"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// binary is the path of the sandbox program under test: $SANDBOX_BIN, or a program built for this
// test run.
var binary string

// testDir is the temporary directory with all files of this test run.
var testDir string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	testDir = dir
	// Keep the tests away from the user's own sandboxes.
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	os.Unsetenv("SANDBOX_DATA_DIR")
	os.Unsetenv("KUBECONFIG")
	if binary = os.Getenv("SANDBOX_BIN"); binary == "" {
		binary = filepath.Join(dir, "sandbox")
		build := exec.Command("make", "--no-print-directory", "-C", "..", "build", "OUT="+dir)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	defer stopShared()
	return m.Run()
}

// turns holds the tests that have taken their turn.
var turns sync.Map

// takeTurn waits until a test may keep processors busy, which the operator's make test decides by how
// busy they are: see turns.go in its hack/suites. Without it, takeTurn returns at once. The turn lasts
// until the end of the test. A turn that comes too late for WITHIN skips the test.
func takeTurn(t testing.TB) {
	if _, taken := turns.LoadOrStore(t, true); taken {
		return
	}
	if conn, err := net.Dial("unix", os.Getenv("TIDEKEEPER_TURNS")); err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintln(conn, "3s"); err == nil {
			_, _ = conn.Read(make([]byte, 1)) // It ends with the turn, or with make test.
		}
	}
	beginInTime(t)
}

// begun holds the tests that have begun in time.
var begun sync.Map

// beginInTime skips a test that has not called it before, if it is too late for WITHIN of the operator's
// make test-all.
func beginInTime(t testing.TB) {
	if _, again := begun.Load(t); again {
		return
	}
	if until, err := strconv.ParseInt(os.Getenv("TIDEKEEPER_TESTS_UNTIL"), 10, 64); err == nil && time.Now().Unix() >= until {
		t.Skip("SKIPPED: it could not begin in time: the machine is too slow, or its caches were empty")
	}
	begun.Store(t, true)
}

// result holds a command's output and exit code.
type result struct {
	stdout, stderr string
	code           int
}

// play runs a command with sandboxes of its own, such as explore, when it is the test's turn.
func play(t testing.TB, args ...string) result {
	t.Helper()
	takeTurn(t)
	return command(t, args...)
}

func command(t testing.TB, args ...string) result {
	t.Helper()
	beginInTime(t)
	r, err := runCommand(args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func runCommand(args ...string) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return result{}, err
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, nil
}

// owned is the --owner flag that makes a sandbox stop when the test process exits, even if the test
// process is killed.
var owned = fmt.Sprint("--owner=", os.Getpid())

// sandbox identifies a sandbox by its data directory.
type sandbox struct {
	dir string
	up  *client.Sandbox
}

// start starts a sandbox, which is stopped at the end of the test.
func start(t *testing.T, args ...string) sandbox {
	t.Helper()
	takeTurn(t)
	s := sandbox{dir: t.TempDir()}
	t.Cleanup(func() {
		if t.Failed() {
			s.explain(t)
		}
		s.run(t, "down")
	})
	var err error
	if s.up, err = client.Up(t.Context(), client.Options{Binary: binary, Dir: s.dir, Args: args}); err != nil {
		t.Fatal(err)
	}
	return s
}

// explain logs the components' states and the last lines of their logs: a test that waited for too
// long may have waited for a component that had crashed.
func (s sandbox) explain(t testing.TB) {
	t.Helper()
	status := s.run(t, "status")
	t.Logf("the sandbox as it was last:\n%s%s", status.stdout, status.stderr)
	logs, err := filepath.Glob(filepath.Join(s.dir, "logs", "*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, file := range logs {
		t.Logf("%s ends with:\n%s", filepath.Base(file), strings.Join(supervisor.Tail(file, 10), "\n"))
	}
}

// withDir inserts the --data-dir flag after the subcommand's name.
func (s sandbox) withDir(args []string) []string {
	return append([]string{args[0], "--data-dir", s.dir}, args[1:]...)
}

func (s sandbox) run(t testing.TB, args ...string) result {
	t.Helper()
	return command(t, s.withDir(args)...)
}

// must runs a command and returns its output. It fails the test if the command fails.
func (s sandbox) must(t testing.TB, args ...string) string {
	t.Helper()
	r := s.run(t, args...)
	if r.code != 0 {
		t.Fatalf("sandbox %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

func (s sandbox) status(t testing.TB) client.Status {
	t.Helper()
	var status client.Status
	if err := json.Unmarshal([]byte(s.must(t, "status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	return status
}

func (s sandbox) pids(t testing.TB) []int {
	t.Helper()
	st := s.status(t)
	pids := []int{st.PID}
	for _, c := range st.Components {
		pids = append(pids, c.PID)
	}
	return pids
}

func (s sandbox) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	return clientOf(t, filepath.Join(s.dir, "kubeconfig"))
}

func clientOf(t testing.TB, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

// patience is the minimum timeout of waits, which is long because the machine may be busy.
const patience = 4 * time.Minute

// longTimeout is the --timeout flag of commands whose deadline no test is about.
const longTimeout = "--timeout=10m"

// waitFor waits until the function "missing" returns "". It fails the test with the last result of
// "missing" once the given duration has passed, or once patience has passed if that is longer.
func waitFor(t testing.TB, usually time.Duration, missing func() string) {
	t.Helper()
	timeout := max(patience, usually)
	if err := client.Wait(context.WithoutCancel(t.Context()), timeout, "nothing is missing", func() error {
		if what := missing(); what != "" {
			return errors.New(what)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func alive(pid int) bool {
	buf, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// A zombie process counts as terminated.
	return err == nil && !strings.Contains(string(buf), ") Z ")
}

func waitGone(t testing.TB, pids []int) {
	t.Helper()
	waitFor(t, 10*time.Second, func() string {
		for _, pid := range pids {
			if alive(pid) {
				return fmt.Sprintf("process %d is still alive", pid)
			}
		}
		return ""
	})
}

// shared holds the sandbox that is shared by tests that clean up after themselves.
var shared struct {
	sync.Once
	sandbox
	err error
}

func sharedSandbox(t testing.TB) sandbox {
	t.Helper()
	shared.Do(func() {
		shared.up, shared.err = client.Up(context.Background(), client.Options{Binary: binary, Audit: true})
		if shared.err == nil {
			shared.dir = shared.up.Dir
		}
	})
	if shared.err != nil {
		t.Fatalf("shared sandbox: %v", shared.err)
	}
	return shared.sandbox
}

func stopShared() {
	if shared.up != nil {
		_ = shared.up.Down(context.Background())
	}
}
