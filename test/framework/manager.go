// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Manager is a running manager process.
type Manager struct {
	// Probes is the URL of the health probes, Metrics the URL of the metrics.
	Probes, Metrics string

	*process
}

// StartManager starts the manager with the rights that config/rbac grants, with
// metrics over plain HTTP unless the arguments say otherwise, and waits until it is
// ready. If it is still running when the test ends, it is stopped. Its log is shown
// if the test has failed.
func (c *Cluster) StartManager(t testing.TB, args ...string) *Manager {
	t.Helper()
	m := c.LaunchManager(t, args...)
	m.AwaitReady(t)
	return m
}

// LaunchManager is StartManager without waiting.
func (c *Cluster) LaunchManager(t testing.TB, args ...string) *Manager {
	t.Helper()
	probes, metrics := FreeAddress(t), FreeAddress(t)
	m := runManager(t, c.managerBinary, append([]string{
		"--kubeconfig", c.manager,
		"--health-probe-bind-address", probes, "--metrics-bind-address", metrics, "--metrics-secure=false",
		"--log-level=debug", "--log-format=text",
	}, slices.Concat(everyManager, args)...)...)
	m.Probes, m.Metrics = "http://"+probes, "http://"+metrics
	managers.Lock()
	defer managers.Unlock()
	managers.all = append(slices.DeleteFunc(managers.all, func(m *launched) bool { return !m.Running() }), &launched{m, c.Dir, args})
	return m
}

// everyManager has the arguments of every manager of a package of tests.
var everyManager []string

// VerifyDecoding lets the tests of a package start managers with --verify-decoding, and fail if the
// log of a manager reports a difference. It is for TestMain, before [Main], and not for
// measurements.
func VerifyDecoding() { everyManager = []string{"--verify-decoding"} }

// launched is a manager of a cluster, with the arguments from the test.
type launched struct {
	*Manager
	dir  string
	args []string
}

// managers are all managers that were launched.
var managers struct {
	sync.Mutex
	all []*launched
}

// finalizing returns a manager that can remove finalizers, or nil: a manager that is ready, runs all
// controllers in all namespaces, and uses the API server without a proxy.
func (c *Cluster) finalizing() *Manager {
	managers.Lock()
	defer managers.Unlock()
	for _, m := range managers.all {
		hampered := slices.ContainsFunc(m.args, func(arg string) bool {
			return strings.HasPrefix(arg, "--controllers") || strings.HasPrefix(arg, "--kubeconfig") || strings.HasPrefix(arg, "--namespaces")
		})
		if m.dir == c.Dir && !hampered && m.Running() && !m.Suspended() && m.Ready() == nil {
			return m.Manager
		}
	}
	return nil
}

// AwaitReady waits until the manager reports that it is ready.
func (m *Manager) AwaitReady(t testing.TB) {
	t.Helper()
	Eventually(t, "the manager is ready", func() error {
		if !m.Running() {
			t.Fatalf("the manager ended while starting:\n%s", m.Log())
		}
		return m.Ready()
	})
}

// Ready returns nil if the manager reports that it is ready.
func (m *Manager) Ready() error {
	response, err := http.Get(m.Probes + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", response.Status)
	}
	return nil
}

// Run starts the manager with exactly these arguments, and does not wait.
func Run(t testing.TB, args ...string) *Manager {
	t.Helper()
	path, err := Binary("TIDEKEEPER_BIN", "tidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	return runManager(t, path, args...)
}

// runManager starts the binary at a path, or the manager if the path is empty.
func runManager(t testing.TB, path string, args ...string) *Manager {
	t.Helper()
	if path == "" {
		return Run(t, args...)
	}
	return &Manager{process: run(t, "manager", path, args...)}
}
