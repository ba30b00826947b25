// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// safeguard is something that the manager does lest a fault leads to another
// end.
type safeguard struct {
	name string
	// out takes it out of the source: text of a file, and what stands instead.
	out []edit
	// scenario and fault are where that is noticed. Without the fault the manager
	// works, unless there is none.
	scenario, fault string
}

type edit struct{ file, old, new string }

var safeguards = []safeguard{
	{
		name: "the record in the same write as what it records",
		out: []edit{{
			"internal/nodepool/node_controller.go",
			`patch := client.RawPatch(types.MergePatchType, plan.patch(node, now))`,
			`if plan.recordChanged {
		alone := nodePlan{record: plan.record, recordChanged: true}
		if err := r.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, alone.patch(node, now))); err != nil {
			return ctrl.Result{}, err
		}
		plan.recordChanged = false
	}
	patch := client.RawPatch(types.MergePatchType, plan.patch(node, now))`,
		}},
		scenario: "pool edited", fault: "killed before it is sent",
	},
	{
		name: "the precondition on the resourceVersion",
		out: []edit{{
			"internal/nodepool/plan.go",
			`metadata := map[string]any{"resourceVersion": node.ResourceVersion}`,
			`metadata := map[string]any{}`,
		}},
		scenario: "pool created", fault: "overtaken by somebody else, watches frozen",
	},
	{
		name: "the tick as the identity of a restart",
		out: []edit{
			{"internal/restart/controller.go", `RestartedAtAnnotation: clockTime(tick)`, `RestartedAtAnnotation: clockTime(r.clock.Now())`},
			{"internal/restart/decide.go", `if !served {`, `if !served || !d.sent.Equal(tick) {`},
			{"internal/restart/decide.go", `if d.sent.Equal(tick) || t.sentFor(tick, d.now) {`, `if d.sent.Equal(tick) {`},
		},
		scenario: "restart from tick to finish", fault: "killed between sending and answer",
	},
	{
		name: "the finalizer",
		out: []edit{
			{
				"internal/nodepool/pool_controller.go",
				`if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) {`,
				`if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) && deleting {`,
			},
			{"internal/nodepool/plan.go", ` && slices.Contains(pool.Finalizers, tidekeeperv1.NodePoolFinalizer)`, ``},
		},
		scenario: "pool deleted", // needs no fault
	},
}

// TestSafeguards takes each safeguard out, and sees that the matrix notices. By
// default it does so with the one that is noticed soonest.
func TestSafeguards(t *testing.T) {
	chosen := safeguards[:1]
	if framework.AllFaults() {
		chosen = safeguards
	}
	for _, g := range chosen {
		t.Run(g.name, func(t *testing.T) {
			l := newLane(t, cluster.WithManager(g.manager(t)))
			l.patience = framework.Patience // each of these is expected to run out
			defer l.stop()
			s := scenarioNamed(t, g.scenario)
			var undisturbed outcome
			failures := try(t, func(t testing.TB) { undisturbed = l.play(t, s, nil, nil) })
			switch {
			case len(failures) > 0 && g.fault == "":
				t.Logf("%s is noticed:\n%s", g.scenario, failures[0])
				return
			case len(failures) > 0:
				t.Fatalf("without the safeguard, undisturbed:\n%s", strings.Join(failures, "\n"))
			}
			for _, f := range faultsOf(&undisturbed) {
				if f.name != g.fault {
					continue
				}
				failures := try(t, func(t testing.TB) { l.play(t, s, &f, &undisturbed) })
				if len(failures) > 0 {
					t.Logf("%s, %s, is noticed:\n%s", g.scenario, f.where(&undisturbed), failures[0])
					return
				}
			}
			t.Errorf("%s: %s: nobody notices that it is missing", g.scenario, g.fault)
		})
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

// manager builds a manager without the safeguard, and returns its path.
func (g *safeguard) manager(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	texts := map[string]string{}
	for _, e := range g.out {
		file := filepath.Join(framework.Root(), e.file)
		if _, ok := texts[file]; !ok {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
		if strings.Count(texts[file], e.old) != 1 {
			t.Fatalf("%s: want this once, it is what the safeguard consists of:\n%s", e.file, e.old)
		}
		texts[file] = strings.Replace(texts[file], e.old, e.new, 1)
	}
	for file, text := range texts {
		replaced := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replaced, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[file] = replaced
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	return framework.Build(t, "./cmd/tidekeeper", "-overlay", filepath.Join(dir, "overlay.json"))
}
