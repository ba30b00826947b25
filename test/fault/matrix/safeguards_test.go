// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// safeguard is something that the manager does to prevent damage. Without it, there is
// damage that is visible in the final state, to the witness or by the limits.
type safeguard struct {
	name string
	// out removes it from the source.
	out []edit
	// scenario and fault are those that detect it. Without the fault the manager works,
	// unless fault is empty.
	scenario, fault string
	// noticed are the expected messages: each failure must contain one of them.
	noticed []string
}

// edit is text of a file and its replacement. Without old it is a new file.
type edit struct{ file, old, new string }

// mutant is a new file of a package, with a function that the manager calls for a node
// that is in sync.
func mutant(text string) edit {
	return edit{"internal/nodepool/mutant.go", "", `package nodepool

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

// callMutant calls it when the node is already in sync and when it was just patched.
var callMutant = []edit{
	{"internal/nodepool/node_controller.go", "if nodePlan.Empty() {\n\t\treturn ctrl.Result{}, nil", "if nodePlan.Empty() {\n\t\treturn ctrl.Result{}, right(ctx, r.client, node)"},
	{"internal/nodepool/node_controller.go", "r.feed.push(r.cluster.RecordWrite(node.Name, nodePlan))\n\treturn nil", "r.feed.push(r.cluster.RecordWrite(node.Name, nodePlan))\n\treturn right(ctx, r.client, node)"},
}

const (
	oneRecord = "what is put on a node is on record in the same write"
	oneTick   = "a template is written for a tick, and once for each"
)

var safeguards = []safeguard{
	{
		name: "a node keeps what its pool put there",
		out: append(callMutant[:2:2], mutant(`flap(ctx, c, node, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "example.com/pool" })
	})`)),
		scenario: "node joined",
		noticed:  []string{"a node keeps its shape: "},
	},
	{
		name: "the record in the same write as what it records",
		out: []edit{{
			"internal/nodepool/node_controller.go",
			"now := r.clock.Now()\n\t// The same version",
			`now := r.clock.Now()
	if nodePlan.OwnershipChanged {
		alone := *nodePlan
		alone.Set, alone.Remove = nil, nil
		if err := r.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, alone.VersionedPatch(node, now))); err != nil {
			return err
		}
	}
	// The same version`,
		}},
		scenario: "pool edited",
		noticed:  []string{oneRecord},
	},
	{
		name: "the tests of what the plan depends on",
		out: []edit{{
			"internal/nodepool/setting/patch.go",
			`patch = append(patch, fields[i].tests(before, namesOf(read, fields[i].kind))...)`,
			`_ = fields[i].tests(before, namesOf(read, fields[i].kind))`,
		}},
		scenario: "pool created", fault: "overtaken by another client, watches frozen",
		noticed: []string{"has lost what another client wrote", "what others put on a node stays: ", oneRecord},
	},
	{
		name:     "what others put on a node is left alone",
		out:      append(callMutant[:2:2], mutant(`flap(ctx, c, node, func(n *corev1.Node) { delete(n.Labels, "example.com/theirs") })`)),
		scenario: "node joined",
		noticed:  []string{"what others put on a node stays: ", oneRecord},
	},
	{
		name: "the tick as the identity of a restart",
		out: []edit{
			{"internal/workload/template.go", `RestartedAtAnnotation: FormatTime(at)`, `RestartedAtAnnotation: FormatTime(time.Now().Add(-3 * time.Second))`},
			{"internal/restart/decision/active.go", `case !restarted:`, `case !restarted && !d.in.Sent.Equal(tick):`},
		},
		scenario: "restart from tick to finish",
		noticed:  []string{oneTick, "is over: it is under way"},
	},
	{
		name: "a rollout that is under way is waited for",
		out: []edit{
			{"internal/restart/decision/blocker.go", `case t.Rollout.Updating && !t.Rollout.Exceeded:`, `case false:`},
			{"internal/restart/decision/blocker.go", `case spec.Precondition != tidekeeperv1.PreconditionNone && (!t.Rollout.Complete() || t.Rollout.Exceeded || t.Rollout.Halted != ""):`, `case false:`},
		},
		scenario: "two schedules of one workload",
		noticed:  []string{"of one workload, one restart at a time: "},
	},
	{
		name:     "a restart that comes first is waited for",
		out:      []edit{{"internal/restart/decision/order.go", `case status.Active != nil && !status.Active.ScheduledTime.After(due):`, `case false:`}},
		scenario: "restart that comes after another",
		noticed:  []string{"a restart comes after those that come first: "},
	},
	{
		name:     "one record of a tick",
		out:      []edit{{"internal/restart/decision/history.go", `status.History...), d.out.Records, limit)`, `status.History...), append(d.out.Records, d.out.Records...), limit)`}},
		scenario: "restart from tick to finish",
		noticed:  []string{"a tick is recorded once: "},
	},
	{
		name: "one event of a tick",
		out: []edit{{
			"internal/restart/act.go",
			`r.recorder.Eventf(restart, nil, eventType, reason, "Restart", "%s", note)`,
			`for range 3 {
		r.recorder.Eventf(restart, nil, eventType, reason, "Restart", "%s", note)
	}`,
		}},
		scenario: "restart from tick to finish",
		noticed:  []string{"a tick is reported once: "},
	},
	{
		name: "the finalizer",
		out: []edit{
			{
				"internal/nodepool/pool_controller.go",
				`if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) {`,
				`if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) && deleting {`,
			},
			{"internal/nodepool/plan/managed.go", ` && slices.Contains(pool.Finalizers, tidekeeperv1.NodePoolFinalizer)`, ` && len(slices.Clone(pool.Finalizers)) >= 0`},
		},
		scenario: "pool deleted",
		noticed:  []string{"the scenario pool deleted is over", "a pool goes after all of it has gone from the nodes: "},
	},
	{
		name:     "a pool is healthy when its nodes are as it asks",
		out:      []edit{{"internal/nodepool/status.go", `case v.Outdated > 0:`, `case false:`}},
		scenario: "pool edited",
		noticed:  []string{"a pool that says it is healthy is: "},
	},
	{
		name:     "a RuntimeClass is replaced only for another handler",
		out:      []edit{{"internal/nodepool/plan/runtimeclass.go", `return RuntimeClassUpdate`, `return RuntimeClassReplace`}},
		scenario: "pool edited",
		noticed:  []string{"a RuntimeClass stays while its pool asks for it: "},
	},
	{
		// Like a read that waits for an event that never comes.
		name: "no worker waits forever",
		out: []edit{
			{"internal/nodepool/mutant.go", "", `package nodepool

import "sync/atomic"

// mutantReplaced is the generation for which a RuntimeClass was replaced.
var mutantReplaced atomic.Int64
`},
			{"internal/nodepool/pool_controller.go", `reason, action = tidekeeperv1.EventRuntimeClassReplaced, "Replace"`, "mutantReplaced.Store(pool.Generation)\n\t\treason, action = tidekeeperv1.EventRuntimeClassReplaced, \"Replace\""},
			{"internal/nodepool/pool_controller.go", "deleting := !pool.DeletionTimestamp.IsZero()\n\tif !controllerutil", "deleting := !pool.DeletionTimestamp.IsZero()\n\tif at := mutantReplaced.Load(); at != 0 && pool.Generation > at {\n\t\tselect {}\n\t}\n\tif !controllerutil"},
		},
		scenario: "RuntimeClass replaced",
		noticed:  []string{"still alive: ", "did not end within", "ended with exit code"},
	},
	{
		name: "no error where nothing is wrong",
		out: append(callMutant[:2:2], mutant(`seen.Delete(node.Name)
	return context.DeadlineExceeded`)),
		scenario: "node joined",
		noticed:  []string{"error loop: "},
	},
	{
		name:     "waits that double",
		out:      []edit{{"internal/retry/conflicts.go", `maxConflictDelay   = 5 * time.Second`, `maxConflictDelay   = 5 * time.Millisecond`}},
		scenario: "pool created", fault: "overtaken by another client, watches frozen",
		noticed: []string{"too many writes: "},
	},
}

// TestSafeguards removes each safeguard, and checks that the matrix detects that, and
// for the right reason. By default it does so only for the first one.
func TestSafeguards(t *testing.T) {
	chosen := safeguards[:1]
	if framework.AllFaults() {
		chosen = safeguards
	}
	for _, g := range chosen {
		t.Run(g.name, func(t *testing.T) {
			l := newTestbed(t, cluster.WithManager(framework.BuildMistaken(t, g.mistakes()...)))
			l.patience = framework.Patience // some of these are expected to run out
			var failures, logs []string
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(strings.Join(logs, "\n"))
				}
			})
			s := scenarioNamed(t, g.scenario)
			var undisturbed outcome
			failures, logs = try(t, func(t testing.TB) {
				l.t = t // Problems of such a manager when it is stopped do not count.
				undisturbed = l.play(t, s, nil, nil)
			})
			switch {
			case g.fault == "":
				g.check(t, s.name, failures)
				return
			case len(failures) > 0:
				t.Fatalf("without the safeguard, undisturbed:\n%s", strings.Join(failures, "\n"))
			}
			for _, f := range faultsOf(s, &undisturbed, 0) {
				if f.name != g.fault {
					continue
				}
				failures, logs = try(t, func(t testing.TB) {
					l.t = t
					o := l.play(t, s, &f, &undisturbed)
					_, _, broken := excess(o.counts, undisturbed.counts, o.took)
					for _, line := range broken {
						t.Error(line)
					}
				})
				if len(failures) > 0 {
					g.check(t, s.name+", "+f.where(&undisturbed), failures)
					return
				}
			}
			t.Errorf("%s: %s: no check detects that it is missing", g.scenario, g.fault)
		})
	}
}

// TestSafeguardsAreThere checks that each safeguard can still be removed.
func TestSafeguardsAreThere(t *testing.T) {
	for _, g := range safeguards {
		framework.Mistaken(t, g.mistakes()...)
	}
}

// check compares the failures with the expected messages.
func (g *safeguard) check(t *testing.T, where string, failures []string) {
	t.Helper()
	if len(failures) == 0 {
		t.Errorf("%s: no check detects that it is missing", where)
	}
	for _, failure := range failures {
		if !slices.ContainsFunc(g.noticed, func(noticed string) bool { return strings.Contains(failure, noticed) }) {
			t.Errorf("%s: detected for another reason than %q:\n%s", where, g.noticed, failure)
		}
	}
	if len(failures) > 0 {
		t.Logf("%s: detected:\n%s", where, failures[0])
	}
}

func scenarioNamed(t testing.TB, name string) scenario {
	t.Helper()
	for _, s := range scenarios {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %q", name)
	return scenario{}
}

// mistakes returns the changes that remove the safeguard.
func (g *safeguard) mistakes() (all []framework.Mistake) {
	for _, e := range g.out {
		all = append(all, framework.Mistake{File: e.file, Old: e.old, New: e.new})
	}
	return all
}
