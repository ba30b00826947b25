// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// Short names for taint effects.
const (
	NoSchedule       = corev1.TaintEffectNoSchedule
	PreferNoSchedule = corev1.TaintEffectPreferNoSchedule
	NoExecute        = corev1.TaintEffectNoExecute
)

// PatchTime is the time at which tests carry out plans.
var PatchTime = time.Date(2026, time.March, 29, 1, 30, 0, 0, time.UTC)

// ApplyPlan returns the node as the API server would store it after the plan's JSON patch. The test
// fails if the plan's merge patch has a different result.
func ApplyPlan(t interface {
	Helper()
	Fatalf(string, ...any)
}, nodePlan *plan.NodePlan, node *corev1.Node) *corev1.Node {
	t.Helper()
	patch, versioned := nodePlan.Patch(node, PatchTime), nodePlan.VersionedPatch(node, PatchTime)
	patched, err := ApplyPatch(node, patch)
	if err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	merged, err := apply(node, func(before []byte) ([]byte, error) { return jsonpatch.MergePatch(before, versioned) })
	if err != nil {
		t.Fatalf("apply %s: %v", versioned, err)
	}
	if merged.ResourceVersion != node.ResourceVersion {
		t.Fatalf("the patch is for version %q of the node, which was planned at %q", merged.ResourceVersion, node.ResourceVersion)
	}
	if diff := cmp.Diff(merged, patched, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s does not do the same as %s (-of the latter +of the former):\n%s", patch, versioned, diff)
	}
	patched.ResourceVersion += "0"
	return patched
}

// ApplyPatch returns the node as changed by a JSON patch, or the error with which the API server
// would reject the patch.
func ApplyPatch(node *corev1.Node, patch []byte) (*corev1.Node, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return apply(node, operations.Apply)
}

func apply(node *corev1.Node, patch func([]byte) ([]byte, error)) (*corev1.Node, error) {
	before, err := json.Marshal(node)
	if err != nil {
		return nil, err
	}
	after, err := patch(before)
	if err != nil {
		return nil, err
	}
	patched := &corev1.Node{}
	return patched, json.Unmarshal(after, patched)
}
