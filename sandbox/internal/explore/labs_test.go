// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Of the sandboxes that no run has, those that rest for longest go, whichever lab they are of.
func TestLabsKeepTheLatest(t *testing.T) {
	labs, err := NewLabs(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var stopped []string
	add := func(l *lab, name string) {
		s := &sandbox{lab: l, stop: func() { stopped = append(stopped, name) }}
		s.over()
	}
	one, two := &lab{}, &lab{}
	for _, l := range []*lab{one, two} {
		l.idled = func() { labs.trim(labs.mostIdle) }
		labs.made = append(labs.made, l)
	}
	for i, l := range []*lab{one, two, two, one} {
		add(l, string(rune('a'+i)))
	}
	if want := []string{"a", "b"}; !slices.Equal(stopped, want) {
		t.Errorf("stopped %q, want %q", stopped, want)
	}
	if two.take() == nil || two.take() != nil || one.take() == nil || one.take() != nil {
		t.Error("one sandbox of each lab should have been kept")
	}
	add(one, "e")
	labs.Close()
	if stopped[len(stopped)-1] != "e" {
		t.Errorf("Close left the last one: %q", stopped)
	}
	if _, err := os.Stat(labs.scratch.dir); !os.IsNotExist(err) {
		t.Errorf("Close left the directory: %v", err)
	}
}

// Explorers share a lab if their runs begin alike: if the same is installed, wherever that is, on as
// many nodes, with the same controllers. What is played, and without a node by whom, does not matter.
func TestLabsAreSharedByTheirState(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	of := func(change func(*Explorer)) string {
		e := &Explorer{Command: []string{"operator", "one"}, Workload: &Workload{Nodes: new(int), Install: []string{file("one.yaml", "a: 1")}}}
		change(e)
		state, err := e.beginning()
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	same := of(func(*Explorer) {})
	for name, tc := range map[string]struct {
		change func(*Explorer)
		shared bool
	}{
		"steps":             {func(e *Explorer) { e.Workload.Steps = []Step{{Apply: "a"}} }, true},
		"another operator":  {func(e *Explorer) { e.Command = []string{"operator", "two"} }, true},
		"other contents":    {func(e *Explorer) { e.Workload.Install = []string{file("two.yaml", "a: 2")} }, false},
		"nodes":             {func(e *Explorer) { e.Workload.Nodes = new(1) }, false},
		"fewer controllers": {func(e *Explorer) { e.Workload.WithoutControllers = []string{"job-controller"} }, false},
		"host network":      {func(e *Explorer) { e.Workload.HostNetwork = true }, false},
		"account":           {func(e *Explorer) { e.Workload.ServiceAccount = "none" }, false},
	} {
		if shared := of(tc.change) == same; shared != tc.shared {
			t.Errorf("%s: shared is %t", name, shared)
		}
	}
	node := func(command string) string {
		return of(func(e *Explorer) { e.Workload.Nodes, e.Command = new(1), []string{command} })
	}
	if node("one") == node("two") {
		t.Error("two operators share the Pod of the first")
	}
}
