// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Proxy is a running fault proxy. docs/fault-proxy.md says what its rules are.
type Proxy struct {
	// Kubeconfig is that of clients of the proxy: a manager goes through it when
	// it is started with --kubeconfig.
	Kubeconfig string

	*process
	control string
	log     string
}

// Passed is a line of the proxy's log: a request that has ended, or, with an
// Event, a fault that was done to an event of a watch.
type Passed struct {
	Time                                             time.Time
	ID                                               int64
	Verb, Resource, Path, Namespace, Name, UserAgent string
	Event, Fault, Rule, Error                        string
	Status, Upstream                                 int
	Bytes                                            int64
	Seconds                                          float64
}

// StartProxy starts a proxy whose clients are the manager's user, with the
// rules of a scenario if there is one, and stops it when the test ends.
func (c *Cluster) StartProxy(t testing.TB, scenario string) *Proxy {
	t.Helper()
	path, err := Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	dir, control := t.TempDir(), FreeAddress(t)
	p := &Proxy{Kubeconfig: filepath.Join(dir, "kubeconfig"), control: "http://" + control, log: filepath.Join(dir, "log")}
	args := []string{"proxy", "--kubeconfig", c.manager, "--write-kubeconfig", p.Kubeconfig, "--log", p.log, "--control", control}
	if scenario != "" {
		file := filepath.Join(dir, "scenario.yaml")
		if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--scenario", file)
	}
	p.process = run(t, "proxy", path, args...)
	Eventually(t, "the proxy is ready", func() error {
		if !p.Running() {
			t.Fatalf("the proxy ended while starting:\n%s", p.Log())
		}
		_, err := os.Stat(p.Kubeconfig)
		return err
	})
	return p
}

// Add adds the rules of a scenario.
func (p *Proxy) Add(t testing.TB, scenario string) {
	t.Helper()
	p.call(t, http.MethodPost, "/rules", scenario, nil)
}

// Remove removes a rule and lets go what it holds.
func (p *Proxy) Remove(t testing.TB, name string) {
	t.Helper()
	p.call(t, http.MethodDelete, "/rules/"+name, "", nil)
}

// Clear removes all rules.
func (p *Proxy) Clear(t testing.TB) {
	t.Helper()
	p.call(t, http.MethodDelete, "/rules", "", nil)
}

// AwaitFired waits until a rule has been done so many times.
func (p *Proxy) AwaitFired(t testing.TB, name string, times int) {
	t.Helper()
	p.call(t, http.MethodGet, fmt.Sprintf("/rules/%s?fired=%d&timeout=%s", name, times, Patience), "", nil)
}

// Fired returns how often a rule has been done.
func (p *Proxy) Fired(t testing.TB, name string) int {
	t.Helper()
	var rule struct{ Fired int }
	p.call(t, http.MethodGet, "/rules/"+name, "", &rule)
	return rule.Fired
}

// Freeze holds back the events of the watches that match, like
// "match: {resources: [nodes]}"; of all if there is no match.
func (p *Proxy) Freeze(t testing.TB, match string) {
	t.Helper()
	p.call(t, http.MethodPost, "/freeze", match, nil)
}

// Thaw lets the events come again, those held back first.
func (p *Proxy) Thaw(t testing.TB) {
	t.Helper()
	p.call(t, http.MethodPost, "/thaw", "", nil)
}

// Cut breaks off the watches that match, all if there is no match.
func (p *Proxy) Cut(t testing.TB, match string) {
	t.Helper()
	p.call(t, http.MethodPost, "/cut", match, nil)
}

// Passed returns the log so far.
func (p *Proxy) Passed(t testing.TB) []Passed {
	t.Helper()
	return p.PassedSince(t, 0)
}

// Mark returns where the log ends now.
func (p *Proxy) Mark(t testing.TB) int64 {
	t.Helper()
	info, err := os.Stat(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// PassedSince returns what was added to the log since a mark.
func (p *Proxy) PassedSince(t testing.TB, mark int64) []Passed {
	t.Helper()
	file, err := os.Open(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	var passed []Passed
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // It is still being written.
		}
		var one Passed
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("a line of the proxy's log: %v\n%s", err, line)
		}
		passed = append(passed, one)
	}
	return passed
}

// Watch is a watch that goes through the proxy.
type Watch struct {
	Resource string
	// Passed is how many events its client has been sent.
	Passed int
}

// Watches returns the watches that are open.
func (p *Proxy) Watches(t testing.TB) []Watch {
	t.Helper()
	var list struct{ Watches []Watch }
	p.call(t, http.MethodGet, "/watches", "", &list)
	return list.Watches
}

func (p *Proxy) call(t testing.TB, method, path, body string, answer any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.control+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s of the proxy: %s", method, path, text)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			t.Fatal(err)
		}
	}
}
