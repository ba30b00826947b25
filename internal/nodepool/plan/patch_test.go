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

// A taint of another client keeps its value, its position and its time, whatever happens to
// ours between them.
func TestPlanLeavesTaintsOfOthersAlone(t *testing.T) {
	before := objects.PatchTime.Add(-48 * time.Hour)
	gpu := setting.TaintKey("gpu", "NoSchedule")
	others := func(between ...func(*objects.NodeMaker)) *objects.NodeMaker {
		m := objects.Node("a").TaintAt("node.kubernetes.io/unreachable", "", objects.NoExecute, before)
		for _, put := range between {
			put(m)
		}
		return m.Taint("z", "1", objects.PreferNoSchedule).TaintAt("a", "1", objects.NoExecute, before)
	}
	ours := func(value string) func(*objects.NodeMaker) {
		return func(m *objects.NodeMaker) { m.TaintOf("worker", "gpu", value, objects.NoSchedule) }
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

// The whole patch as it is sent.
func TestPatch(t *testing.T) {
	gpu := setting.TaintKey("gpu", "NoExecute")
	for _, tc := range []struct {
		name string
		node *objects.NodeMaker
		pool plan.PoolOnNode
		want string
	}{
		{
			name: "everything that changes is in one patch, under the resourceVersion that was planned for",
			node: objects.Node("a").ResourceVersion("42").Label("kept", "1").Annotation("kept", "1").Taint("kept", "1", objects.NoSchedule).
				LabelOf("worker", "gone", "1").AnnotationOf("worker", "gone", "1").TaintOf("worker", "gone", "1", objects.NoSchedule),
			pool: objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "", objects.NoExecute).
				Managing(setting.LabelKey("gone"), setting.AnnotationKey("gone"), setting.TaintKey("gone", "NoSchedule")).Evictor(),
			want: `{
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
			name: "taints that do not change are not in it",
			node: objects.Node("a").ResourceVersion("42").Taint("kept", "1", objects.NoSchedule),
			pool: objects.Pool("worker").Labels("zone", "1").Member(),
			want: `{"metadata": {"resourceVersion": "42", "labels": {"zone": "1"}, "annotations": {"tidekeeper.dev/node-pools":
				"{\"worker\":{\"labels\":{\"zone\":\"1\"}}}"}}}`,
		},
		{
			name: "removing the last taint leaves an empty list, and the last entry no record",
			node: objects.Node("a").ResourceVersion("42").TaintAt("gpu", "", objects.NoExecute, objects.PatchTime).Owned("worker", gpu, ""),
			pool: objects.Pool("worker").Taint("gpu", "", objects.NoExecute).NoMember(),
			want: `{"metadata": {"resourceVersion": "42", "annotations": {"tidekeeper.dev/node-pools": null}}, "spec": {"taints": []}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := tc.node.Obj()
			nodePlan := plan.ForNode(node, []plan.PoolOnNode{tc.pool})
			var want, got any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatalf("the wanted patch is not JSON: %v", err)
			}
			if err := json.Unmarshal(nodePlan.Patch(node, objects.PatchTime), &got); err != nil {
				t.Fatalf("the patch is not JSON: %v", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.node.Obj(), node); diff != "" {
				t.Errorf("Patch changed the node (-before +after):\n%s", diff)
			}
		})
	}
}
