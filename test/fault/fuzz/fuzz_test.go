// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz has sandbox fuzz edit our kinds in all ways that their schemas suggest, while the
// manager runs. The objects that are edited are the files beside this one; together they have
// every field.
//
// By default a few edits of each object are played, and with FAULTS=all every edit. OBJECT selects one object by name, or several, separated
// by semicolons, and EDIT edits by a part of their names.
package fuzz

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// object is one of the files.
type object struct {
	name string
	// few are the edits that are played unless it is FAULTS=all.
	few []string
	// own are what it has and no other object: only that is edited. None is all of it.
	own []string
	// flags are those that it needs.
	flags []string
	// more are flags with which it is played by FAULTS=all.
	more []string
}

var objects = []object{
	{
		// The headroom is worked out once in five seconds at most. What is at rest sooner lacks the
		// condition, which an edit would then seem to have left behind.
		name: "nodepool", flags: []string{"--busy", "--quiet=10s"},
		few: []string{"spec.taints[0].key: empty", "spec.taints[0].effect: PreferNoSchedule", "spec.labels: a key of Kubernetes", "spec.selector: a selector"},
	},
	{
		// What a schedule has seen of its workload's ConfigMaps before it was suspended stays, so that a
		// change while it is suspended is noticed. A new one that is suspended has seen nothing.
		name: "restart", flags: []string{"--ignore", "scheduledrestarts.tidekeeper.dev status.configHash"},
		few: []string{"spec.targetRef.name: with a suffix", "spec.timeZone: an unknown time zone", "spec.windows: empty"},
	},
	{
		name: "nodepool-expressions", own: []string{"spec.selector", "spec.taints"}, flags: []string{"--busy"}, more: []string{"--faults"},
		few: []string{"spec.selector.matchExpressions: one more item"},
	},
	{
		name: "restart-evict", own: []string{"spec.method", "spec.maxUnavailable", "spec.targetRef"},
		few: []string{"spec.maxUnavailable: all"},
	},
	{
		name: "freeze", flags: []string{"--busy"},
		few: []string{"spec.from: another text"},
	},
}

func TestFuzz(t *testing.T) {
	chosen := strings.FieldsFunc(os.Getenv("OBJECT"), func(r rune) bool { return r == ';' })
	for _, name := range chosen {
		if !slices.ContainsFunc(objects, func(o object) bool { return o.name == name }) {
			t.Fatalf("OBJECT=%q: there is no object %q", os.Getenv("OBJECT"), name)
		}
	}
	for _, o := range objects {
		if slices.Contains(chosen, o.name) || len(chosen) == 0 {
			t.Run(o.name, func(t *testing.T) {
				if !framework.AllFaults() {
					t.Parallel() // It waits most of the time.
				}
				o.fuzz(t)
			})
		}
	}
}

// fuzz edits an object. Nothing must be found, and something must have been accepted.
func (o object) fuzz(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{
		"fuzz", "--install=../../../config/manager/namespace.yaml", "--install=../../../config/crd", "--install=../../../config/rbac",
		"--object", o.name + ".yaml", "--dir", dir, "--nodes=1", "--quiet=3s", "--patience=60s",
	}, o.flags...)
	only := o.own
	switch edit := os.Getenv("EDIT"); {
	case edit != "":
		only = []string{edit}
	case framework.AllFaults():
		args = append(args, o.more...)
		if shard := framework.Shard(); shard != "" {
			args = append(args, "--shard", shard)
		}
	default:
		only = o.few
		args = append(args, "--jobs=1")
	}
	for _, part := range only {
		args = append(args, "--only", part)
	}
	code, report := run(t, append(append(args, "--"), manager(t)...)...)
	if code != 0 {
		keep := ""
		if found, _ := filepath.Glob(filepath.Join(dir, "finding-*.yaml")); len(found) > 0 {
			text, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			keep = "\n" + string(text)
		}
		t.Fatalf("exit code %d\n%s%s", code, report, keep)
	}
	if strings.Contains(report, ": 0 accepted") || strings.Contains(report, "could not be judged") {
		t.Errorf("no edit was accepted, or not all could be judged:\n%s", report)
	}
	t.Log(report)
}

// manager is the command of the manager.
func manager(t *testing.T) []string {
	t.Helper()
	path, err := framework.Binary("TIDEKEEPER_BIN", "tidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		path, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--status-interval=200ms",
		"--optional-watches=configmaps,secrets",
	}
}

// run runs the sandbox, and returns its exit code and what it writes.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	path, err := framework.Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	// It ends what it has started.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = framework.Patience
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(cmp.Or(err, t.Context().Err()))
	}
	return command.ProcessState.ExitCode(), out.String()
}
