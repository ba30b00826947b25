// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// TestLabsKeepTheLatest checks that the longest idle sandboxes are removed first, regardless of
// their lab.
func TestLabsKeepTheLatest(t *testing.T) {
	labs, err := NewLabs(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var stopped []string
	add := func(l *Lab, name string) {
		s := &Sandbox{lab: l, stop: func() { stopped = append(stopped, name) }}
		s.Over()
	}
	one, two := &Lab{}, &Lab{}
	for _, l := range []*Lab{one, two} {
		l.idled = func() { labs.trim(labs.mostIdle) }
		labs.made = append(labs.made, l)
	}
	for i, l := range []*Lab{one, two, two, one} {
		add(l, string(rune('a'+i)))
	}
	if want := []string{"a", "b"}; !slices.Equal(stopped, want) {
		t.Errorf("stopped %q, want %q", stopped, want)
	}
	if two.take(false) == nil || two.take(false) != nil || one.take(false) == nil || one.take(false) != nil {
		t.Error("one sandbox of each lab should have been kept")
	}
	add(one, "e")
	labs.Close()
	if stopped[len(stopped)-1] != "e" {
		t.Errorf("Close left the last one: %q", stopped)
	}
	if _, err := os.Stat(labs.scratch.Dir); !os.IsNotExist(err) {
		t.Errorf("Close left the directory: %v", err)
	}
}

// TestLabsAreSharedByTheirState checks that explorers share a lab if they use the same manifests,
// number of nodes and controllers. Steps do not matter, and commands matter only if there are
// nodes.
func TestLabsAreSharedByTheirState(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	of := func(change func(*Setup)) string {
		e := &Setup{Command: []string{"operator", "one"}, Workload: &workload.Workload{Nodes: new(int), Install: []string{file("one.yaml", "a: 1")}}}
		change(e)
		state, err := e.beginning()
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	same := of(func(*Setup) {})
	for name, tc := range map[string]struct {
		change func(*Setup)
		shared bool
	}{
		"steps":             {func(e *Setup) { e.Workload.Steps = []workload.Step{{Apply: "a"}} }, true},
		"another operator":  {func(e *Setup) { e.Command = []string{"operator", "two"} }, true},
		"other contents":    {func(e *Setup) { e.Workload.Install = []string{file("two.yaml", "a: 2")} }, false},
		"nodes":             {func(e *Setup) { e.Workload.Nodes = new(1) }, false},
		"fewer controllers": {func(e *Setup) { e.Workload.WithoutControllers = []string{"job-controller"} }, false},
		"host network":      {func(e *Setup) { e.Workload.HostNetwork = true }, false},
		"account":           {func(e *Setup) { e.Workload.ServiceAccount = "none" }, false},
	} {
		if shared := of(tc.change) == same; shared != tc.shared {
			t.Errorf("%s: shared is %t", name, shared)
		}
	}
	node := func(command string) string {
		return of(func(e *Setup) { e.Workload.Nodes, e.Command = new(1), []string{command} })
	}
	if node("one") == node("two") {
		t.Error("two operators share the Pod of the first")
	}
}

// TestSandboxesAreReplaced checks that a sandbox is removed after mostRuns runs, or once a fault
// has hit its control plane.
func TestSandboxesAreReplaced(t *testing.T) {
	l, stopped := &Lab{}, 0
	s := &Sandbox{lab: l, stop: func() { stopped++ }}
	for run := 1; run < mostRuns; run++ {
		s.Over()
		if stopped > 0 || l.take(false) != s {
			t.Fatalf("it is not kept after %d runs", run)
		}
	}
	if s.Over(); stopped != 1 || l.take(false) != nil {
		t.Errorf("it is kept after %d runs", mostRuns)
	}
	hit := &Sandbox{lab: l, stop: func() { stopped++ }, spoilt: true}
	if hit.Over(); stopped != 2 || l.take(false) != nil {
		t.Error("one whose control plane was hit is kept")
	}
}
