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
	// Kubeconfig is for clients of the proxy: a manager that is started with it as
	// --kubeconfig uses the proxy.
	Kubeconfig string

	*process
	proxy *sandbox.Proxy
}

// Passed is a line of the proxy's log.
type Passed = sandbox.LogEntry

// Watch is an open watch through the proxy.
type Watch = sandbox.Watch

// StartProxy starts a proxy whose clients act as the manager's user, and stops it when the test ends.
// scenario has its initial rules, or is empty.
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

// proxyCommand returns the command of the proxy: the subcommand of the sandbox, or the program in
// PROXY_BIN, which is the proxy alone, built with the race detector.
func proxyCommand() ([]string, error) {
	if os.Getenv("PROXY_BIN") != "" {
		path, err := Binary("PROXY_BIN", "proxy-race")
		return []string{path}, err
	}
	path, err := Binary("SANDBOX_BIN", "sandbox")
	return []string{path, "proxy"}, err
}

// must fails the test if a request to the proxy's own API failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Add adds the rules of a scenario.
func (p *Proxy) Add(t testing.TB, scenario string) {
	t.Helper()
	must(t, p.proxy.AddRules(t.Context(), scenario))
}

// Remove removes a rule and releases the requests and events that it holds back.
func (p *Proxy) Remove(t testing.TB, name string) {
	t.Helper()
	must(t, p.proxy.RemoveRule(t.Context(), name))
}

// Clear removes all rules.
func (p *Proxy) Clear(t testing.TB) {
	t.Helper()
	must(t, p.proxy.ClearRules(t.Context()))
}

// AwaitFired waits until a rule has fired this number of times.
func (p *Proxy) AwaitFired(t testing.TB, name string, times int) {
	t.Helper()
	must(t, p.proxy.AwaitFired(t.Context(), name, times, Patience))
}

// Fired returns how often a rule has fired.
func (p *Proxy) Fired(t testing.TB, name string) int {
	t.Helper()
	rule, err := p.proxy.Rule(t.Context(), name)
	must(t, err)
	return rule.Fired
}

// Freeze holds back the events of the watches that match, like
// "match: {resources: [nodes]}", or of all watches if there is no match.
func (p *Proxy) Freeze(t testing.TB, match string) {
	t.Helper()
	must(t, p.proxy.Freeze(t.Context(), match))
}

// Thaw lets events pass again, starting with the events that were held back.
func (p *Proxy) Thaw(t testing.TB) {
	t.Helper()
	must(t, p.proxy.Thaw(t.Context()))
}

// Cut ends the watches that match, or all of them if there is no match.
func (p *Proxy) Cut(t testing.TB, match string) {
	t.Helper()
	must(t, p.proxy.Cut(t.Context(), match))
}

// Mark returns the current end of the log.
func (p *Proxy) Mark(t testing.TB) int64 {
	t.Helper()
	size, err := p.proxy.LogSize()
	must(t, err)
	return size
}

// PassedSince returns the lines that were added to the log since a mark.
func (p *Proxy) PassedSince(t testing.TB, mark int64) []Passed {
	t.Helper()
	entries, err := p.proxy.LogSince(mark)
	must(t, err)
	return entries
}

// Watches returns the open watches.
func (p *Proxy) Watches(t testing.TB) []Watch {
	t.Helper()
	watches, err := p.proxy.Watches(t.Context())
	must(t, err)
	return watches
}
