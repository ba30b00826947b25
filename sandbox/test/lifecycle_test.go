// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestForegroundUntilCtrlC(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	takeTurn(t)
	cmd := exec.Command(binary, "up", "--data-dir", dir, "--nodes", "2", "--kubeconfig", kubeconfig)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(stdout)
	var said strings.Builder
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Press Ctrl-C") {
			break
		}
	}
	for _, want := range []string{"is ready after", "export KUBECONFIG=" + kubeconfig, "sandbox kubectl --data-dir " + dir} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("up did not say %q:\n%s", want, said.String())
		}
	}
	s := sandbox{dir: dir}
	st := s.status(t)
	if st.Nodes.Total != 2 || st.Nodes.Ready != 2 || len(st.Components) != 5 || st.RSSBytes == 0 {
		t.Errorf("status: %+v", st)
	}
	if _, err := clientOf(t, kubeconfig).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	pids := s.pids(t)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	waitGone(t, pids)
	if r := s.run(t, "status"); r.code != 1 || !strings.Contains(r.stderr, "no sandbox runs in") {
		t.Errorf("status after Ctrl-C: %+v", r)
	}
}

func TestStateIsKeptUnlessFresh(t *testing.T) {
	s := sandbox{dir: t.TempDir()}
	// If a directory has this mode, other users could replace the control socket in it.
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	secret := kubeconfigPlace(t)
	t.Cleanup(func() { s.run(t, "down") })
	s.must(t, "up", "--detach", owned, "--nodes=1", "--kubeconfig", secret)
	wantSecret(t, secret)
	wantMode(t, s.dir, 0o755)
	wantMode(t, filepath.Join(s.dir, "control.sock"), 0o600)

	first := s.status(t)
	s.must(t, "kubectl", "create", "namespace", "kept")
	for _, same := range [][]string{nil, {"--nodes=0"}, {"--nodes=1", owned, "--audit=false", "--fresh=false", "--kubeconfig", secret, "--pod-slow-after=15s", "--pod-events"}} {
		if out := s.must(t, append([]string{"up", "--detach"}, same...)...); !strings.Contains(out, "already runs") {
			t.Errorf("a second up --detach %v said %q", same, out)
		}
	}
	for _, other := range []string{"--nodes=2", "--owner=1", "--audit=true", "--fresh=true", "--kubeconfig=" + secret + "2", "--pod-slow-after=16s", "--pod-events=false", "--keep-history=true"} {
		wantError(t, s.run(t, "up", "--detach", other), "was started without "+other)
	}
	s.must(t, "down")
	if out := s.must(t, "down"); !strings.Contains(out, "No sandbox runs in") {
		t.Errorf("a second down said %q", out)
	}

	// Remove a certificate to simulate a directory from an older version: a new version may need an
	// additional certificate, and must issue it.
	for _, file := range []string{"etcd-client.crt", "etcd-client.key"} {
		if err := os.Remove(filepath.Join(s.dir, "pki", file)); err != nil {
			t.Fatal(err)
		}
	}
	// If two "up" commands run concurrently, the second must wait for the sandbox that the first
	// one starts.
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if r := s.run(t, "up", "--detach", "--nodes=3"); r.code != 0 {
				t.Errorf("two concurrent ups: %+v", r)
			}
			if r := s.run(t, "kubectl", "get", "namespace", "kept"); r.code != 0 {
				t.Errorf("after two concurrent ups: %+v", r)
			}
		})
	}
	both.Wait()
	again := s.status(t)
	if again.APIServer != first.APIServer {
		t.Errorf("the API server moved from %s to %s", first.APIServer, again.APIServer)
	}
	if again.Nodes.Total != 3 {
		t.Errorf("there are %d nodes, want 3", again.Nodes.Total)
	}
	s.must(t, "down")
	// The sandbox was started without an owner, so a later command cannot add an owner.
	wantError(t, s.run(t, "up", "--detach", owned), "was made to be kept")
	s.must(t, "up", "--detach", "--fresh", "--nodes=1", owned)
	if r := s.run(t, "kubectl", "get", "namespace", "kept"); r.code == 0 {
		t.Error("a fresh sandbox still has the state of the previous one")
	}
}

func TestTwoSideBySide(t *testing.T) {
	// The path of this directory is too long for a Unix socket in it.
	long := sandbox{dir: filepath.Join(t.TempDir(), strings.Repeat("long", 40))}
	t.Cleanup(func() { long.run(t, "down") })
	long.must(t, "up", "--detach", "--nodes=1")
	other := sharedSandbox(t)
	// kubectl must use the sandbox in --data-dir, not the kubeconfig in $KUBECONFIG.
	t.Setenv("KUBECONFIG", filepath.Join(other.dir, "kubeconfig"))
	long.must(t, "kubectl", "create", "namespace", "of-one")
	if _, err := other.client(t).CoreV1().Namespaces().Get(t.Context(), "of-one", metav1.GetOptions{}); err == nil {
		t.Error("what was created in one sandbox exists in the other")
	}
	// The administrator's kubeconfig of one sandbox must not grant access to another sandbox.
	config, err := os.ReadFile(filepath.Join(long.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(t.TempDir(), "kubeconfig")
	swapped := bytes.ReplaceAll(config, []byte(long.status(t).APIServer), []byte(other.status(t).APIServer))
	if err := os.WriteFile(stranger, swapped, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, stranger).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the administrator of one sandbox has access to the other")
	}
	r := long.run(t, "up")
	wantError(t, r, "a sandbox already runs in")
	long.must(t, "down")
	if st := other.status(t); st.Nodes.Error != "" {
		t.Errorf("stopping one sandbox affected the other: %s", st.Nodes.Error)
	}
}

func TestKilledParentLeavesNoProcess(t *testing.T) {
	s := start(t, "--nodes=1")
	pids := s.pids(t)
	if len(pids) != 6 {
		t.Fatalf("%d processes, want 6", len(pids))
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(t, pids)
	// The leftover files of the killed sandbox must not prevent a new start.
	s.must(t, "up", "--detach")
}

func TestRemovedDirectoryStopsIt(t *testing.T) {
	s := start(t, "--nodes=1")
	pids := s.pids(t)
	// Retry, because processes that are still running may write files while the directory is
	// removed.
	remove := func() string {
		if err := os.RemoveAll(s.dir); err != nil {
			return err.Error()
		}
		return ""
	}
	waitFor(t, 5*time.Second, remove)
	waitGone(t, pids)
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed is there again: %v", err)
	}
}

func TestCrashDuringStartIsReported(t *testing.T) {
	s := start(t, "--nodes=1")
	s.must(t, "down")
	if err := os.WriteFile(filepath.Join(s.dir, "pki", "kube-apiserver.crt"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, detach := range []string{"--detach=true", "--detach=false"} {
		r := s.run(t, "up", detach)
		if r.code != 1 || !strings.Contains(r.stderr, "error: kube-apiserver crashed (exit code 1)") ||
			!strings.Contains(r.stderr, "failed to find any PEM data") {
			t.Errorf("up %s: exit code %d\n%s", detach, r.code, r.stderr)
		}
	}
	if r := s.run(t, "status"); r.code != 1 {
		t.Error("a sandbox that failed to start is still running")
	}
}

func TestCrashIsReportedAndComponentStartsAgain(t *testing.T) {
	s := start(t, "--nodes=1")
	const name = "kube-scheduler"
	find := func() (state, exit string, pid, restarts int, tail []string) {
		for _, c := range s.status(t).Components {
			if c.Name == name {
				return c.State, c.Exit, c.PID, c.Restarts, c.LogTail
			}
		}
		t.Fatalf("no %s", name)
		return
	}
	_, _, pid, _, _ := find()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 5*time.Second, func() string {
		if state, exit, _, _, tail := find(); state != "crashed" || exit != "SIGKILL" || len(tail) == 0 {
			return fmt.Sprintf("it is %s (%s), its log ends with %q", state, exit, tail)
		}
		return ""
	})
	r := s.run(t, "status")
	if r.code != 1 || !strings.Contains(r.stdout, name+" crashed (SIGKILL). Its log,") || !strings.Contains(r.stdout, " is not ready (pid") ||
		!strings.Contains(r.stderr, "error: the sandbox is not ready: "+name+" has crashed") {
		t.Errorf("status does not report it: %+v", r)
	}
	waitFor(t, 5*time.Second, func() string {
		log, err := os.ReadFile(filepath.Join(s.dir, "sandbox.log"))
		if err != nil || !strings.Contains(string(log), name+" crashed") {
			return fmt.Sprintf("its log does not report the crash: %s (%v)", log, err)
		}
		return ""
	})
	s.must(t, "component", "start", name)
	if state, _, _, restarts, _ := find(); state != "running" || restarts != 1 {
		t.Errorf("after the start it is %s, with %d restarts", state, restarts)
	}
}

func TestComponentsOnCommand(t *testing.T) {
	s := start(t, "--nodes=1")
	const name = "kube-apiserver"
	for _, c := range s.status(t).Components {
		// The kernel keeps 15 characters of the name that top shows.
		called, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", c.PID))
		if want := c.Name[:min(15, len(c.Name))]; err != nil || strings.TrimSpace(string(called)) != want {
			t.Errorf("top shows %s as %q, want %s (%v)", c.Name, called, want, err)
		}
	}
	steps := []struct{ action, state string }{
		{"pause", "paused"}, {"resume", "running"}, {"kill", "killed"}, {"start", "running"},
	}
	for _, step := range steps {
		s.must(t, "component", step.action, name)
		for _, c := range s.status(t).Components {
			if c.Name == name && c.State != step.state {
				t.Errorf("after %s it is %s, want %s", step.action, c.State, step.state)
			}
		}
		// The sandbox rejects actions that are impossible in the component's current state.
		if r := s.run(t, "component", step.action, name); r.code != 1 || !strings.Contains(r.stderr, name+" is "+step.state) {
			t.Errorf("%s twice: %+v", step.action, r)
		}
	}
	client := s.client(t)
	waitFor(t, 20*time.Second, func() string {
		if _, err := client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestAuditLog(t *testing.T) {
	s := sharedSandbox(t)
	name := "audited"
	if _, err := s.client(t).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"secret": "content"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server writes the audit log entry after the response, so the entry may still be
	// incomplete.
	waitFor(t, 10*time.Second, func() string {
		text, err := os.ReadFile(filepath.Join(s.dir, "audit.log"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break
			}
			var event struct {
				Level, Stage, Verb string
				User               struct{ Username string }
				ObjectRef          struct{ Resource, Name string }
				RequestObject      any
			}
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatal(err)
			}
			if event.Stage == "RequestReceived" || event.Level != "Metadata" || event.RequestObject != nil {
				t.Fatalf("event: %+v", event)
			}
			if event.Verb == "create" && event.ObjectRef.Name == name && event.User.Username == "sandbox-admin" {
				found++
			}
		}
		if found != 1 {
			return fmt.Sprintf("one request was logged %d times", found)
		}
		return ""
	})
}

func TestUserIsSubjectToRBAC(t *testing.T) {
	s := sharedSandbox(t)
	file := filepath.Join(t.TempDir(), "alice")
	// A kubeconfig must replace a world-readable file with a private file.
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if printed := s.must(t, "kubeconfig", "--user", "alice", "--group", "readers", "--output", file); printed != "" {
		t.Errorf("a kubeconfig that is written to a file is printed, too:\n%s", printed)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the kubeconfig is %v (%v), want a file of mode 0600", info, err)
	}
	alice := clientOf(t, file)
	if _, err := alice.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil ||
		!strings.Contains(err.Error(), `User "alice" cannot list resource "nodes"`) {
		t.Errorf("without a role: %v", err)
	}
	s.must(t, "kubectl", "create", "clusterrolebinding", "readers", "--clusterrole=system:node", "--group=readers")
	waitFor(t, 5*time.Second, func() string {
		if _, err := alice.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestLinksAreThePrograms checks that the binary acts as etcd, kube-apiserver or kubectl when it is
// started under that name, as controller-runtime's envtest does.
func TestLinksAreThePrograms(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(binary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for program, want := range map[string]string{
		"etcd --version":           "etcd Version: 3.",
		"kube-apiserver --version": "Kubernetes v1.",
		"kubectl version --client": "Client Version: v1.",
	} {
		args := strings.Fields(program)
		out, err := exec.Command(filepath.Join(dir, args[0]), args[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
}
