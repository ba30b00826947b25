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
	// Probes is the base URL of the health probes; Metrics is the base URL of the metrics endpoint.
	Probes, Metrics string

	*process
}

// StartManager starts the manager with the rights that config/rbac grants and waits until it is
// ready. Metrics are served over plain HTTP unless the arguments configure them. If the manager is
// still running when the test ends, it is stopped. If the test has failed, the manager's log is
// shown.
func (c *Cluster) StartManager(t testing.TB, args ...string) *Manager {
	t.Helper()
	m := c.LaunchManager(t, args...)
	m.AwaitReady(t)
	return m
}

// LaunchManager is [Cluster.StartManager], but does not wait until the manager is ready.
func (c *Cluster) LaunchManager(t testing.TB, args ...string) *Manager {
	t.Helper()
	BeginInTime(t)
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

// everyManager lists flags that are passed to every manager that the test binary starts.
var everyManager []string

// VerifyDecoding starts all managers of a package's tests with --verify-decoding. A test fails if
// its manager's log reports a difference. Call it in TestMain, before [Main]. Do not use it for
// measurements.
func VerifyDecoding() { everyManager = []string{"--verify-decoding"} }

// launched is a launched manager, with the cluster's data directory and the test's arguments.
type launched struct {
	*Manager
	dir  string
	args []string
}

// managers lists all managers that were launched and may still be running.
var managers struct {
	sync.Mutex
	all []*launched
}

// finalizing returns a manager that can remove finalizers, or nil if there is none. The manager
// must be ready, run all controllers in all namespaces, and use the API server without a proxy.
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

// AwaitReady waits until the manager's readiness probe succeeds.
func (m *Manager) AwaitReady(t testing.TB) {
	t.Helper()
	Eventually(t, "the manager is ready", func() error {
		if !m.Running() {
			t.Fatalf("the manager ended while starting:\n%s", m.Log())
		}
		return m.Ready()
	})
}

// Ready returns nil if the manager's readiness probe succeeds.
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

// Run starts the manager with exactly the given arguments, and does not wait until it is ready.
func Run(t testing.TB, args ...string) *Manager {
	t.Helper()
	path, err := Binary("TIDEKEEPER_BIN", "tidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	return runManager(t, path, args...)
}

// runManager starts the binary at `path`, or the manager of this repository if `path` is empty.
func runManager(t testing.TB, path string, args ...string) *Manager {
	t.Helper()
	if path == "" {
		return Run(t, args...)
	}
	return &Manager{process: run(t, "manager", path, args...)}
}
