// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestPlanLeavesTaintsOfOthersAlone checks that another client's taint keeps its value, position
// and timeAdded, regardless of how the surrounding taints of the pool change.
func TestPlanLeavesTaintsOfOthersAlone(t *testing.T) {
	before := objects.PatchTime.Add(-48 * time.Hour)
	gpu := setting.TaintKey("gpu", "NoSchedule")
	others := func(between ...func(*objects.NodeBuilder)) *objects.NodeBuilder {
		m := objects.Node("a").TaintAt("node.kubernetes.io/unreachable", "", objects.NoExecute, before)
		for _, put := range between {
			put(m)
		}
		return m.Taint("z", "1", objects.PreferNoSchedule).TaintAt("a", "1", objects.NoExecute, before)
	}
	ours := func(value string) func(*objects.NodeBuilder) {
		return func(m *objects.NodeBuilder) { m.TaintOf("worker", "gpu", value, objects.NoSchedule) }
	}
	for _, row := range []planRow{
		{
			name:    "new taints go to the end, in the order of their keys",
			node:    others(),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Taint("gpu", "1", objects.NoSchedule).Taint("b", "", objects.NoSchedule).Member()},
			want:    others().TaintOf("worker", "b", "", objects.NoSchedule).TaintOf("worker", "gpu", "1", objects.NoSchedule),
			changes: []string{"worker: added taint b:NoSchedule", "worker: added taint gpu:NoSchedule"},
		},
		{
			name:    "a changed taint keeps its position",
			node:    others(ours("1")),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Taint("gpu", "2", objects.NoSchedule).Member()},
			want:    others(ours("2")),
			changes: []string{"worker: updated taint gpu:NoSchedule"},
		},
		{
			name:    "a removed taint leaves the others where they are",
			node:    others(ours("1")),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Managing(gpu).Member()},
			want:    others(),
			changes: []string{"worker: removed taint gpu:NoSchedule"},
		},
		{
			name:  "a taint of another client with one of our keys and another effect is not ours",
			node:  others().Taint("gpu", "9", objects.PreferNoSchedule),
			pools: []plan.PoolOnNode{objects.Pool("worker").Taint("gpu", "1", objects.NoSchedule).Member()},
			want: others().Taint("gpu", "9", objects.PreferNoSchedule).
				TaintOf("worker", "gpu", "1", objects.NoSchedule),
			changes: []string{"worker: added taint gpu:NoSchedule"},
		},
	} {
		row.run(t)
	}
}

// TestPatch compares a plan's JSON patch and merge patch with the expected JSON.
func TestPatch(t *testing.T) {
	gpu := setting.TaintKey("gpu", "NoExecute")
	for _, tc := range []struct {
		name string
		node *objects.NodeBuilder
		pool plan.PoolOnNode
		// tests and changes are the expected operations of the JSON patch. versioned is the
		// expected merge patch.
		tests, changes string
		versioned      string
	}{
		{
			name: "everything that changes is in one patch",
			node: objects.Node("a").ResourceVersion("42").Label("kept", "1").Annotation("kept", "1").Taint("kept", "1", objects.NoSchedule).
				LabelOf("worker", "gone", "1").AnnotationOf("worker", "gone", "1").TaintOf("worker", "gone", "1", objects.NoSchedule),
			pool: objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "", objects.NoExecute).
				Managing(setting.LabelKey("gone"), setting.AnnotationKey("gone"), setting.TaintKey("gone", "NoSchedule")).Evictor(),
			tests: `[
				{"op": "test", "path": "/metadata/uid", "value": "node-a"},
				{"op": "test", "path": "/metadata/labels", "value": {"kept": "1", "gone": "1"}},
				{"op": "test", "path": "/metadata/annotations/gone", "value": "1"},
				{"op": "test", "path": "/metadata/annotations/note", "value": null},
				{"op": "test", "path": "/metadata/annotations/tidekeeper.dev~1node-pools", "value":
					"{\"worker\":{\"labels\":{\"gone\":\"1\"},\"annotations\":{\"gone\":\"1\"},\"taints\":{\"gone:NoSchedule\":\"1\"}}}"},
				{"op": "test", "path": "/spec/taints", "value": [
					{"key": "kept", "value": "1", "effect": "NoSchedule"}, {"key": "gone", "value": "1", "effect": "NoSchedule"}]}
			]`,
			changes: `[
				{"op": "add", "path": "/metadata/labels/zone", "value": "1"},
				{"op": "remove", "path": "/metadata/labels/gone"},
				{"op": "add", "path": "/metadata/annotations/note", "value": "x"},
				{"op": "add", "path": "/metadata/annotations/tidekeeper.dev~1node-pools", "value":
					"{\"worker\":{\"labels\":{\"zone\":\"1\"},\"annotations\":{\"note\":\"x\"},\"taints\":{\"gpu:NoExecute\":\"\"}}}"},
				{"op": "remove", "path": "/metadata/annotations/gone"},
				{"op": "add", "path": "/spec/taints", "value": [
					{"key": "kept", "value": "1", "effect": "NoSchedule"},
					{"key": "gpu", "effect": "NoExecute", "timeAdded": "2026-03-29T01:30:00Z"}]}
			]`,
			versioned: `{
				"metadata": {
					"resourceVersion": "42",
					"labels": {"zone": "1", "gone": null},
					"annotations": {"note": "x", "gone": null, "tidekeeper.dev/node-pools":
						"{\"worker\":{\"labels\":{\"zone\":\"1\"},\"annotations\":{\"note\":\"x\"},\"taints\":{\"gpu:NoExecute\":\"\"}}}"}
				},
				"spec": {"taints": [
					{"key": "kept", "value": "1", "effect": "NoSchedule"},
					{"key": "gpu", "effect": "NoExecute", "timeAdded": "2026-03-29T01:30:00Z"}
				]}
			}`,
		},
		{
			name: "taints on which nothing depends are not in it, and what does not exist is made",
			node: objects.Node("a").ResourceVersion("42").Taint("kept", "1", objects.NoSchedule),
			pool: objects.Pool("worker").Labels("zone", "1").Member(),
			tests: `[
				{"op": "test", "path": "/metadata/uid", "value": "node-a"},
				{"op": "test", "path": "/metadata/labels", "value": null},
				{"op": "test", "path": "/metadata/annotations", "value": null}
			]`,
			changes: `[
				{"op": "add", "path": "/metadata/labels", "value": {"zone": "1"}},
				{"op": "add", "path": "/metadata/annotations", "value": {"tidekeeper.dev/node-pools": "{\"worker\":{\"labels\":{\"zone\":\"1\"}}}"}}
			]`,
			versioned: `{"metadata": {"resourceVersion": "42", "labels": {"zone": "1"}, "annotations": {"tidekeeper.dev/node-pools":
				"{\"worker\":{\"labels\":{\"zone\":\"1\"}}}"}}}`,
		},
		{
			name: "removing the last taint leaves no list, and the last entry no record",
			node: objects.Node("a").ResourceVersion("42").TaintAt("gpu", "", objects.NoExecute, objects.PatchTime).Owned("worker", gpu, ""),
			pool: objects.Pool("worker").Taint("gpu", "", objects.NoExecute).NoMember(),
			tests: `[
				{"op": "test", "path": "/metadata/uid", "value": "node-a"},
				{"op": "test", "path": "/metadata/labels", "value": null},
				{"op": "test", "path": "/metadata/annotations/tidekeeper.dev~1node-pools", "value": "{\"worker\":{\"taints\":{\"gpu:NoExecute\":\"\"}}}"},
				{"op": "test", "path": "/spec/taints", "value": [{"key": "gpu", "effect": "NoExecute", "timeAdded": "2026-03-29T01:30:00Z"}]}
			]`,
			changes: `[
				{"op": "remove", "path": "/metadata/annotations/tidekeeper.dev~1node-pools"},
				{"op": "remove", "path": "/spec/taints"}
			]`,
			versioned: `{"metadata": {"resourceVersion": "42", "annotations": {"tidekeeper.dev/node-pools": null}}, "spec": {"taints": []}}`,
		},
		{
			name: "names are escaped as parts of a JSON pointer",
			node: objects.Node("a").ResourceVersion("42").Label("a.b/c", "1").Annotation("~1/x~0", "<é>"),
			pool: objects.Pool("worker").Annotations("~1/x~0", "2").Taint("k/t", "", objects.NoSchedule).Member(),
			tests: `[
				{"op": "test", "path": "/metadata/uid", "value": "node-a"},
				{"op": "test", "path": "/metadata/labels", "value": {"a.b/c": "1"}},
				{"op": "test", "path": "/metadata/annotations/tidekeeper.dev~1node-pools", "value": null},
				{"op": "test", "path": "/metadata/annotations/~01~1x~00", "value": "<é>"},
				{"op": "test", "path": "/spec/taints", "value": null}
			]`,
			changes: `[
				{"op": "add", "path": "/metadata/annotations/tidekeeper.dev~1node-pools", "value":
					"{\"worker\":{\"annotations\":{\"~1/x~0\":\"2\"},\"taints\":{\"k/t:NoSchedule\":\"\"}}}"},
				{"op": "add", "path": "/metadata/annotations/~01~1x~00", "value": "2"},
				{"op": "add", "path": "/spec/taints", "value": [{"key": "k/t", "effect": "NoSchedule"}]}
			]`,
			versioned: `{"metadata": {"resourceVersion": "42", "annotations": {"~1/x~0": "2", "tidekeeper.dev/node-pools":
				"{\"worker\":{\"annotations\":{\"~1/x~0\":\"2\"},\"taints\":{\"k/t:NoSchedule\":\"\"}}}"}}, "spec": {"taints": [{"key": "k/t", "effect": "NoSchedule"}]}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := tc.node.Obj()
			nodePlan := plan.ForNode(node, []plan.PoolOnNode{tc.pool})
			want := append(decoded[[]any](t, []byte(tc.tests)), decoded[[]any](t, []byte(tc.changes))...)
			if diff := cmp.Diff(want, decoded[[]any](t, nodePlan.Patch(node, objects.PatchTime))); diff != "" {
				t.Errorf("JSON patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decoded[any](t, []byte(tc.versioned)), decoded[any](t, nodePlan.VersionedPatch(node, objects.PatchTime))); diff != "" {
				t.Errorf("versioned patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.node.Obj(), node); diff != "" {
				t.Errorf("Patch changed the node (-before +after):\n%s", diff)
			}
			objects.ApplyPlan(t, &nodePlan, node)
		})
	}
}

func decoded[T any](t *testing.T, text []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s is not JSON: %v", text, err)
	}
	return value
}
