// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"os"
	"testing"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// Proxy is a running fault proxy. sandbox/docs/fault-proxy.md describes its rules.
type Proxy struct {
	// Kubeconfig is the path of a kubeconfig for clients of the proxy, for instance as the
	// --kubeconfig of a manager.
	Kubeconfig string

	*process
	proxy *sandbox.Proxy
}

// Passed is a line in the proxy's log: a request or an event that has passed through the proxy.
type Passed = sandbox.LogEntry

// Watch is an open watch through the proxy.
type Watch = sandbox.Watch

// StartProxy starts a fault proxy whose clients act as the manager's user, and stops it when the
// test ends. `scenario` lists the initial rules in YAML, or is empty.
func (c *Cluster) StartProxy(t testing.TB, scenario string) *Proxy {
	t.Helper()
	command, err := proxyCommand()
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := sandbox.StartProxy(t.Context(), sandbox.ProxyOptions{Command: command, Upstream: c.manager, Scenario: scenario})
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Kubeconfig: proxy.Kubeconfig, process: &process{proxy.Process, "proxy"}, proxy: proxy}
	t.Cleanup(func() {
		if err := proxy.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	p.cleanup(t, func() { p.Stop(t) })
	return p
}

// proxyCommand returns the proxy's command line: a subcommand of the sandbox, or the program that
// PROXY_BIN names. That program contains only the proxy, and is built with the race detector.
func proxyCommand() ([]string, error) {
	if os.Getenv("PROXY_BIN") != "" {
		path, err := Binary("PROXY_BIN", "proxy-race")
		return []string{path}, err
	}
	path, err := Binary("SANDBOX_BIN", "sandbox")
	return []string{path, "proxy"}, err
}

// must fails the test if a request to the proxy's control API failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Add adds the fault rules of a scenario in YAML.
func (p *Proxy) Add(t testing.TB, scenario string) {
	t.Helper()
	must(t, p.proxy.AddRules(t.Context(), scenario))
}

// Remove removes a fault rule, and releases the requests and events that the rule holds back.
func (p *Proxy) Remove(t testing.TB, name string) {
	t.Helper()
	must(t, p.proxy.RemoveRule(t.Context(), name))
}

// Clear removes all fault rules.
func (p *Proxy) Clear(t testing.TB) {
	t.Helper()
	must(t, p.proxy.ClearRules(t.Context()))
}

// AwaitFired waits until a fault rule has fired the given number of times.
func (p *Proxy) AwaitFired(t testing.TB, name string, times int) {
	t.Helper()
	must(t, p.proxy.AwaitFired(t.Context(), name, times, Patience))
}

// Fired returns the number of times that a fault rule has fired.
func (p *Proxy) Fired(t testing.TB, name string) int {
	t.Helper()
	rule, err := p.proxy.Rule(t.Context(), name)
	must(t, err)
	return rule.Fired
}

// Freeze holds back the events of all watches that match the given expression, for instance "match:
// {resources: [nodes]}". With an empty expression it holds back the events of all watches.
func (p *Proxy) Freeze(t testing.TB, match string) {
	t.Helper()
	must(t, p.proxy.Freeze(t.Context(), match))
}

// Thaw releases the events that [Proxy.Freeze] has held back, and lets later events pass.
func (p *Proxy) Thaw(t testing.TB) {
	t.Helper()
	must(t, p.proxy.Thaw(t.Context()))
}

// Cut ends all watches that match the given expression, or all watches if the expression is empty.
func (p *Proxy) Cut(t testing.TB, match string) {
	t.Helper()
	must(t, p.proxy.Cut(t.Context(), match))
}

// Mark returns the current end of the proxy's log, for [Proxy.PassedSince].
func (p *Proxy) Mark(t testing.TB) int64 {
	t.Helper()
	size, err := p.proxy.LogSize()
	must(t, err)
	return size
}

// PassedSince returns the lines that were added to the proxy's log after a position from
// [Proxy.Mark].
func (p *Proxy) PassedSince(t testing.TB, mark int64) []Passed {
	t.Helper()
	entries, err := p.proxy.LogSince(mark)
	must(t, err)
	return entries
}

// Watches returns the watches that are open through the proxy.
func (p *Proxy) Watches(t testing.TB) []Watch {
	t.Helper()
	watches, err := p.proxy.Watches(t.Context())
	must(t, err)
	return watches
}
