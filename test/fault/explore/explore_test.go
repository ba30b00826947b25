// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore runs sandbox explore, which searches for faults that the manager does not
// survive. The workloads are the files in this folder. They include common.yaml, which installs
// Tidekeeper and defines the invariants that the manager must keep at any moment.
//
// By default a few workloads run with one fault each. FAULTS=all runs as many faults of each
// workload as fit into the time EXPLORE, the most promising first. WORKLOAD selects workloads by
// name, separated by semicolons, and FAULT selects faults by a part of their names.
package explore

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// workload is a file in this folder. fault is the only fault that is injected by default.
type workload struct {
	name, fault string
	// args lists flags of the manager.
	args []string
	// argo is set if the workload uses an Argo Rollout.
	argo bool
	// often is set if the workload also runs without FAULTS=all.
	often bool
}

var workloads = []workload{
	{name: "restart", fault: "CrashAfter at step 2, patch deployments.apps", often: true},
	{name: "nodepool", fault: "Overtake at step 2, patch nodes", often: true},
	{name: "pools", fault: "Freeze at step 5, nodepools.tidekeeper.dev"},
	{name: "emptying", fault: "CrashAfter at step 3, create pods/eviction", args: []string{"--no-execute-interval=1s"}},
	{name: "maintenance", fault: "CrashAfter at step 4, create pods/eviction", args: []string{"--controllers=*,node-maintenance"}},
	{name: "shared", fault: "CrashAfter at step 2, patch deployments.apps"},
	{name: "freeze", fault: "DropEvents at step 3, freezes.tidekeeper.dev"},
	{name: "order", fault: "Pause at step 2, patch deployments.apps"},
	{name: "evict", fault: "CrashAfter at step 2, create pods/eviction"},
	{name: "optin", fault: "CrashAfter at step 2, create scheduledrestarts.tidekeeper.dev"},
	{name: "members", fault: "CrashAfter at step 5, patch nodes"},
	{name: "age", fault: "CrashAfter at step 2, patch deployments.apps"},
	{
		name: "config", fault: "CrashAfter at step 2, patch deployments.apps",
		args: []string{"--optional-watches=configmaps", "--restart-change-settle=1s"},
	},
	{name: "edit", fault: "CrashAfter at step 2, patch deployments.apps"},
	{name: "statefulset", fault: "CrashAfter at step 2, patch statefulsets.apps"},
	{name: "daemonset", fault: "CrashAfter at step 2, patch daemonsets.apps"},
	{name: "argo", fault: "CrashAfter at step 2, patch rollouts.argoproj.io", argo: true},
	{name: "podcount", fault: "Conflict at step 2, patch replicasets.apps", args: []string{"--controllers=*,pod-count"}},
}

// enough is the default time for which a workload runs with FAULTS=all. EXPLORE overrides it.
const enough = 10 * time.Minute

func TestExplore(t *testing.T) {
	chosen := strings.FieldsFunc(os.Getenv("WORKLOAD"), func(r rune) bool { return r == ';' })
	for _, name := range chosen {
		if !slices.ContainsFunc(workloads, func(w workload) bool { return w.name == name }) {
			t.Fatalf("WORKLOAD=%q: there is no workload %q", os.Getenv("WORKLOAD"), name)
		}
	}
	for _, w := range workloads {
		if slices.Contains(chosen, w.name) || len(chosen) == 0 && (w.often || framework.AllFaults()) {
			t.Run(w.name, w.explore)
		}
	}
}

// explore runs a workload. It fails the test if a finding is reported, or if no fault was injected.
func (w workload) explore(t *testing.T) {
	dir := t.TempDir()
	args := []string{"explore", "--workload", w.name + ".yaml", "--dir", dir, "--quiet=3s", "--patience=60s"}
	switch fault := os.Getenv("FAULT"); {
	case fault != "":
		args = append(args, "--only", fault)
	case framework.AllFaults():
		limit := enough
		if text := os.Getenv("EXPLORE"); text != "" {
			var err error
			if limit, err = time.ParseDuration(text); err != nil {
				t.Fatalf("EXPLORE=%q: %v", text, err)
			}
		}
		// A run mostly waits, so the number of parallel jobs can exceed the number of processors.
		args = append(args, "--for", limit.String(), "--jobs", strconv.Itoa(4*runtime.NumCPU()))
		if shard := framework.Shard(); shard != "" {
			args = append(args, "--shard", shard)
		}
	default:
		args = append(args, "--jobs=1", "--only", w.fault)
	}
	args = append(append(args, "--"), manager(t)...)
	if w.argo {
		argo(t)
	}
	code, report := run(t, append(args, w.args...)...)
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
	if strings.Contains(report, "Played 0 of") || strings.Contains(report, ", of which 0 were reached") {
		t.Errorf("no fault was played:\n%s", report)
	}
	t.Log(report)
}

// manager returns the manager's command line, with leader election because several managers run.
func manager(t *testing.T) []string {
	t.Helper()
	path, err := framework.Binary("TIDEKEEPER_BIN", "tidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		path, "--leader-elect", "--leader-elect-resource-namespace=tidekeeper-system", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--status-interval=200ms",
	}
}

// argo sets the environment variables that name Argo's controller and CRDs, for workloads that
// install Argo.
func argo(t *testing.T) {
	t.Helper()
	path, err := framework.Binary("ARGO_BIN", "argo-rollouts")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ARGO_BIN", path)
	t.Setenv("ARGO_CRDS", filepath.Join(framework.ModuleDir(t, "hack/argo-rollouts", "github.com/argoproj/argo-rollouts"), "manifests", "crds"))
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
