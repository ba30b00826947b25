// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// safeguard is code in the manager that prevents damage. If the code is removed from the source, a
// workload must detect the damage.
type safeguard struct {
	name string
	// out lists the edits that remove the safeguard from the source.
	out []framework.Mistake
	// workload and fault name the workload and the fault that detect the damage. An empty fault
	// means that the baseline run, without faults, detects it.
	workload, fault string
	// log is a string that must not be in the manager's log.
	log string
	// noticed lists the expected findings as "oracle: reason". Each reported finding must be in the
	// list.
	noticed []string
}

// mutant returns a new source file for package nodepool. It defines the function right, which
// callMutant calls for a node that is in sync. The given string is a part of the function's body.
func mutant(text string) framework.Mistake {
	return framework.Mistake{File: "internal/nodepool/mutant.go", New: `package nodepool

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var seen sync.Map

// flap changes a node and puts it back.
func flap(ctx context.Context, c client.Client, node *corev1.Node, change func(*corev1.Node)) {
	changed := node.DeepCopy()
	change(changed)
	_ = c.Patch(ctx, changed, client.MergeFrom(node))
	back := changed.DeepCopy()
	back.Spec, back.Labels, back.Annotations = node.Spec, node.Labels, node.Annotations
	_ = c.Patch(ctx, back, client.MergeFrom(changed))
}

func right(ctx context.Context, c client.Client, node *corev1.Node) error {
	ours := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "example.com/pool" })
	if _, again := seen.LoadOrStore(node.Name, true); again || !ours {
		if !ours {
			seen.Delete(node.Name)
		}
		return nil
	}
` + text + `
	return nil
}
`}
}

// callMutant makes the manager call the mutant's function right when it finds a node in sync, and
// after it has patched a node.
var callMutant = []framework.Mistake{
	{File: "internal/nodepool/node_controller.go", Old: "if nodePlan.Empty() {\n\t\treturn ctrl.Result{}, nil", New: "if nodePlan.Empty() {\n\t\treturn ctrl.Result{}, right(ctx, r.client, node)"},
	{File: "internal/nodepool/node_controller.go", Old: "r.feed.push(r.cluster.RecordWrite(node.Name, nodePlan))\n\treturn nil", New: "r.feed.push(r.cluster.RecordWrite(node.Name, nodePlan))\n\treturn right(ctx, r.client, node)"},
}

const (
	broken   = "invariant broken: "
	onRecord = broken + "what is put on a node is on record in the same write"
)

var safeguards = []safeguard{
	{
		name: "a node keeps what its pool put there",
		out: append(callMutant[:2:2], mutant(`flap(ctx, c, node, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "example.com/pool" })
	})`)),
		workload: "nodepool",
		// The pool's status may still be Healthy while the taint is missing.
		noticed: []string{broken + "a node keeps its taint while its pool asks for it", broken + "a pool that says it is healthy is"},
	},
	{
		name: "the record in the same write as what it records",
		out: []framework.Mistake{{
			File: "internal/nodepool/node_controller.go",
			Old:  "now := r.clock.Now()\n\t// If this version was overtaken",
			New: `now := r.clock.Now()
	if nodePlan.OwnershipText() != node.Annotations[tidekeeperv1.OwnershipAnnotation] {
		alone := *nodePlan
		alone.Set, alone.Remove = nil, nil
		if err := r.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, alone.VersionedPatch(node, now))); err != nil {
			return err
		}
	}
	// If this version was overtaken`,
		}},
		workload: "nodepool",
		noticed:  []string{onRecord, broken + "what comes on record is there"},
	},
	{
		name: "the tests of what the plan depends on",
		out: []framework.Mistake{{
			File: "internal/nodepool/setting/patch.go",
			Old:  `patch = append(patch, fields[i].tests(before, namesOf(read, fields[i].kind))...)`,
			New:  `_ = fields[i].tests(before, namesOf(read, fields[i].kind))`,
		}},
		workload: "nodepool", fault: "Overtake at step 2, patch nodes node-1 #1",
		noticed: []string{"other state: what another client wrote", broken + "what others put on a node stays", onRecord},
	},
	{
		name:     "what others put on a node is left alone",
		out:      append(callMutant[:2:2], mutant(`flap(ctx, c, node, func(n *corev1.Node) { delete(n.Labels, "example.com/theirs") })`)),
		workload: "nodepool",
		noticed:  []string{broken + "what others put on a node stays"},
	},
	{
		name: "the tick as the identity of a restart",
		out: []framework.Mistake{
			{File: "internal/workload/template.go", Old: `RestartedAtAnnotation: FormatTime(at)`, New: `RestartedAtAnnotation: FormatTime(time.Now().Add(-3 * time.Second))`},
			{File: "internal/restart/decision/progress.go", Old: `case !restarted:`, New: `case !restarted && !p.sent.Equal(tick):`},
		},
		workload: "restart",
		noticed:  []string{broken + "a Deployment is restarted for a tick whose start is on record"},
	},
	{
		name: "a rollout that is under way is waited for",
		out: []framework.Mistake{
			{File: "internal/restart/decision/health.go", Old: `case t.Rollout.Updating && !t.Rollout.Exceeded:`, New: `case false:`},
			{File: "internal/restart/decision/health.go", Old: `case needed && (!t.Rollout.Complete() || t.Rollout.Exceeded || t.Rollout.Halted != ""):`, New: `case false:`},
		},
		workload: "shared",
		noticed:  []string{broken + "of one Deployment, one restart at a time"},
	},
	{
		name:     "a restart that comes first is waited for",
		out:      []framework.Mistake{{File: "internal/restart/decision/order.go", Old: `case status.Active != nil && !status.Active.ScheduledTime.After(due):`, New: `case false:`}},
		workload: "order",
		noticed:  []string{broken + "a restart comes after those that come first"},
	},
	{
		// The second record replaces the previous record, because the workload waits for a certain
		// number of records.
		name: "one record of a tick",
		out: []framework.Mistake{{
			File: "internal/restart/decision/history.go",
			Old:  `Keep(append(room, h.past...), h.added, limit)`,
			New:  `Keep(append(room, h.past...), append(h.added, h.added[:min(len(h.added), len(h.past))]...), min(limit, len(h.added)+len(h.past)))`,
		}},
		workload: "restart",
		noticed:  []string{broken + "a tick is recorded once", broken + "a record stays"},
	},
	{
		name: "the finalizer",
		out: []framework.Mistake{
			{
				File: "internal/nodepool/pool_controller.go",
				Old:  `if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) {`,
				New:  `if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) && deleting {`,
			},
			{File: "internal/nodepool/plan/managed.go", Old: ` && slices.Contains(pool.Finalizers, tidekeeperv1.NodePoolFinalizer)`, New: ` && len(slices.Clone(pool.Finalizers)) >= 0`},
		},
		workload: "nodepool",
		noticed:  []string{broken + "a pool goes after all of it has gone from the nodes"},
	},
	{
		name:     "a pool is healthy when its nodes are as it asks",
		out:      []framework.Mistake{{File: "internal/nodepool/status.go", Old: `case v.Outdated > 0:`, New: `case false:`}},
		workload: "nodepool",
		noticed:  []string{broken + "a pool that says it is healthy is"},
	},
	{
		name:     "a RuntimeClass is replaced only for another handler",
		out:      []framework.Mistake{{File: "internal/nodepool/plan/runtimeclass.go", Old: `return RuntimeClassUpdate`, New: `return RuntimeClassReplace`}},
		workload: "nodepool",
		noticed:  []string{broken + "a RuntimeClass stays while its pool asks for it"},
	},
	{
		// A worker waits forever, as if for an event that never comes.
		name:     "no worker waits forever",
		out:      []framework.Mistake{{File: "internal/restart/act.go", Old: "if err == nil {\n\t\tattempt.DeepCopyInto", New: "if apierrors.IsInternalError(err) {\n\t\tselect {}\n\t}\n\tif err == nil {\n\t\tattempt.DeepCopyInto"}},
		workload: "optin", fault: "ServerError at step 2, patch scheduledrestarts.tidekeeper.dev/status",
		noticed: []string{"other state: scheduledrestarts.tidekeeper.dev default/web"},
	},
	{
		name: "no error where nothing is wrong",
		out: append(callMutant[:2:2], mutant(`seen.Delete(node.Name)
	return context.DeadlineExceeded`)),
		workload: "nodepool",
		log:      "Reconciler error",
		noticed:  []string{"operator failed: Reconciler error"},
	},
}

// TestSafeguards removes each safeguard from the source, and checks that a workload detects the
// damage, for the right reason. Without FAULTS=all it removes only the first safeguard.
func TestSafeguards(t *testing.T) {
	chosen := safeguards[:1]
	if framework.AllFaults() {
		chosen = safeguards
	}
	for _, g := range chosen {
		t.Run(g.name, g.check)
	}
}

// TestSafeguardsAreThere checks that the edits that remove each safeguard still apply.
func TestSafeguardsAreThere(t *testing.T) {
	for _, g := range safeguards {
		framework.Mistaken(t, g.out...)
	}
}

func (g safeguard) check(t *testing.T) {
	framework.InShard(t)
	dir := t.TempDir()
	args := []string{"explore", "--workload", g.workload + ".yaml", "--dir", dir, "--quiet=2s", "--patience=5s", "--jobs=2", "--shrink=false"}
	if g.fault != "" {
		args = append(args, "--only", g.fault)
	} else {
		// The time is used up after the baseline run.
		args = append(args, "--for=1s")
	}
	if g.log != "" {
		args = append(args, "--fail-on-log", g.log)
	}
	command := manager(t)
	command[0] = framework.BuildMistaken(t, g.out...)
	code, report := run(t, append(append(args, "--"), command...)...)
	t.Log(report)
	if code != 2 {
		t.Fatalf("exit code %d, want 2: nothing shows that it is missing", code)
	}
	for _, reason := range found(t, dir) {
		if !slices.ContainsFunc(g.noticed, func(noticed string) bool { return matches(reason, noticed) }) {
			t.Errorf("found for another reason than %q: %s", g.noticed, reason)
		}
	}
}

// matches reports whether a finding, formatted as "oracle: line", is the expected one. The line need
// only contain the expected line.
func matches(reason, noticed string) bool {
	oracle, line, _ := strings.Cut(reason, ": ")
	wantOracle, wantLine, _ := strings.Cut(noticed, ": ")
	return oracle == wantOracle && strings.Contains(line, wantLine)
}

// found returns the lines of all findings in the files in dir, formatted as "oracle: line".
func found(t *testing.T, dir string) (reasons []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "finding-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var finding struct {
			Problems []struct {
				Oracle string
				Lines  []string
			}
		}
		if err := yaml.Unmarshal(text, &finding); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range finding.Problems {
			for _, line := range p.Lines {
				reasons = append(reasons, p.Oracle+": "+line)
			}
		}
	}
	if len(reasons) == 0 {
		t.Errorf("no finding in %s says what is wrong", dir)
	}
	return reasons
}
