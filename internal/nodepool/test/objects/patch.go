// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// The effects of taints, by short names.
const (
	NoSchedule       = corev1.TaintEffectNoSchedule
	PreferNoSchedule = corev1.TaintEffectPreferNoSchedule
	NoExecute        = corev1.TaintEffectNoExecute
)

// PatchTime is when the plans of these tests are carried out.
var PatchTime = time.Date(2026, time.March, 29, 1, 30, 0, 0, time.UTC)

// ApplyPlan returns the node after the API server has applied the plan's patch.
func ApplyPlan(t interface {
	Helper()
	Fatalf(string, ...any)
}, nodePlan *plan.NodePlan, node *corev1.Node) *corev1.Node {
	t.Helper()
	before, err := json.Marshal(node)
	if err != nil {
		t.Fatalf("marshal node: %v", err)
	}
	patch := nodePlan.Patch(node, PatchTime)
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	patched := &corev1.Node{}
	if err := json.Unmarshal(after, patched); err != nil {
		t.Fatalf("unmarshal node: %v", err)
	}
	if patched.ResourceVersion != node.ResourceVersion {
		t.Fatalf("the patch is for version %q of the node, which was planned at %q", patched.ResourceVersion, node.ResourceVersion)
	}
	patched.ResourceVersion += "0"
	return patched
}
