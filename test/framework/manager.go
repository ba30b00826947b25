// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Manager is a running manager process.
type Manager struct {
	// Probes is the URL of its health probes, Metrics that of its metrics.
	Probes, Metrics string

	process *exec.Cmd
	log     log
	done    chan struct{}
}

// StartManager starts the manager with the rights that config/rbac gives it,
// with metrics over plain HTTP unless the arguments say otherwise, and waits
// until it is ready. What still runs when the test ends is stopped, and its log
// shown if the test has failed.
func (c *Cluster) StartManager(t testing.TB, args ...string) *Manager {
	t.Helper()
	m := c.LaunchManager(t, args...)
	m.AwaitReady(t)
	return m
}

// LaunchManager is StartManager without the wait.
func (c *Cluster) LaunchManager(t testing.TB, args ...string) *Manager {
	t.Helper()
	probes, metrics := freeAddress(t), freeAddress(t)
	m := run(t, c.managerBinary, append([]string{
		"--kubeconfig", c.manager,
		"--health-probe-bind-address", probes, "--metrics-bind-address", metrics, "--metrics-secure=false",
		"--log-level=debug", "--log-format=text",
	}, args...)...)
	m.Probes, m.Metrics = "http://"+probes, "http://"+metrics
	return m
}

// AwaitReady waits until the manager says that it is ready.
func (m *Manager) AwaitReady(t testing.TB) {
	t.Helper()
	Eventually(t, "the manager is ready", func() error {
		if !m.Running() {
			t.Fatalf("the manager ended while starting:\n%s", m.Log())
		}
		response, err := http.Get(m.Probes + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz answers %s", response.Status)
		}
		return nil
	})
}

// Run starts the manager with just these arguments, and does not wait.
func Run(t testing.TB, args ...string) *Manager {
	t.Helper()
	path, err := binary("TIDEKEEPER_BIN", "tidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	return run(t, path, args...)
}

// run starts the binary at a path, or the manager if there is none.
func run(t testing.TB, path string, args ...string) *Manager {
	t.Helper()
	if path == "" {
		return Run(t, args...)
	}
	m := &Manager{process: exec.Command(path, args...), done: make(chan struct{})}
	m.process.Stdout, m.process.Stderr = &m.log, &m.log
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = m.process.Wait()
		close(m.done)
	}()
	t.Cleanup(func() {
		if m.Running() {
			m.Stop(t)
		}
		if t.Failed() {
			t.Logf("the log of the manager:\n%s", m.Log())
		}
	})
	return m
}

// Pid is the process ID.
func (m *Manager) Pid() int { return m.process.Process.Pid }

// Running tells whether the process runs.
func (m *Manager) Running() bool {
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}

// Kill ends the manager as a crash would.
func (m *Manager) Kill(t testing.TB) {
	t.Helper()
	if err := m.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-m.done
}

// Signal sends a signal, for instance SIGSTOP: the machine is suspended.
func (m *Manager) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := m.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Stop asks the manager to stop, as a kubelet would, waits until it has, and
// fails the test if it does not do so in order.
func (m *Manager) Stop(t testing.TB) {
	t.Helper()
	if err := m.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if code := m.Wait(t); code != 0 {
		t.Errorf("the manager ended with exit code %d, want 0:\n%s", code, m.Log())
	}
}

// Wait waits until the manager has ended and returns its exit code.
func (m *Manager) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-m.done:
	case <-time.After(Patience):
		_ = m.process.Process.Kill()
		t.Fatalf("the manager did not end within %s:\n%s", Patience, m.Log())
	}
	return m.process.ProcessState.ExitCode()
}

// Log returns what the manager has printed.
func (m *Manager) Log() string { return m.log.String() }

// log collects the output of a process that still runs.
type log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
