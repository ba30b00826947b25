// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz runs sandbox fuzz, which edits objects of Tidekeeper's kinds in all ways that their
// schemas suggest while the manager runs. The edited objects are the files in this folder; together
// they set every field.
//
// By default only a few edits of each object are run; FAULTS=all runs every edit. OBJECT selects
// objects by name, separated by semicolons, and EDIT selects edits by a part of their names.
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

// object is a file in this folder, with the edits to run on it.
type object struct {
	name string
	// few lists the edits that run without FAULTS=all.
	few []string
	// own lists the fields that no other file sets. If it is not empty, only these fields are
	// edited.
	own []string
	// flags lists flags of sandbox fuzz for this object.
	flags []string
	// more lists additional flags of sandbox fuzz with FAULTS=all.
	more []string
	// controllers is the manager's --controllers; empty for the default.
	controllers string
}

var objects = []object{
	{
		// The headroom is computed at most once every five seconds. If the baseline state were
		// recorded earlier, it would lack the condition Headroom, and the first edit would seem to
		// have left it behind.
		name: "nodepool", flags: []string{"--busy", "--quiet=10s"},
		few: []string{"spec.taints[0].key: empty", "spec.taints[0].effect: PreferNoSchedule", "spec.labels: a key of Kubernetes", "spec.selector: a selector"},
	},
	{
		// A suspended ScheduledRestart keeps the hash of its workload's ConfigMaps, so that a
		// change while it is suspended is noticed. A ScheduledRestart that was created suspended
		// has no hash.
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
	{
		// The condition Drainable is evaluated at most once every five seconds.
		name: "nodepool-drains", own: []string{"spec.drainable", "spec.taints"}, flags: []string{"--busy", "--quiet=10s"},
		few: []string{"spec.taints[0].eviction: Immediate"},
	},
	{
		name: "maintenance", controllers: "*,node-maintenance",
		few: []string{"spec.timeZone: an unknown time zone", "spec.suspend: false"},
	},
	{
		name: "maintenance-pools", controllers: "*,node-maintenance", own: []string{"spec.nodes"},
		few: []string{"spec.nodes.pools: one more item"},
	},
	{
		name: "maintenance-names", controllers: "*,node-maintenance", own: []string{"spec.nodes"},
		few: []string{"spec.nodes.names: one more item"},
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
					t.Parallel() // The test mostly waits.
				}
				o.fuzz(t)
			})
		}
	}
}

// fuzz runs edits of an object. It fails the test if a finding is reported, or if no edit was
// accepted.
func (o object) fuzz(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{
		"fuzz", "--install=../../../config/manager/namespace.yaml", "--install=../../../config/crd", "--install=../../../config/rbac", "--install=../../../config/rbac/node_maintenance",
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
	command := manager(t)
	if o.controllers != "" {
		command = append(command, "--controllers="+o.controllers)
	}
	code, report := run(t, append(append(args, "--"), command...)...)
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

// manager returns the manager's command line.
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

// run runs the sandbox, and returns its exit code and output.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	path, err := framework.Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	// The sandbox stops its processes when it is interrupted.
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
