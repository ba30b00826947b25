// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
)

// act carries out the actions of a decision by patching nodes. Each patch contains the
// resourceVersion of the cached node, so that it never overwrites another client's later edit. A
// node that has changed since the decision is not patched: the change causes the next decision.
// Otherwise, a decision made before the cache received the manager's own patch would send the same
// patch once more. An error for a node does not affect the other nodes. act returns the nodes that
// it has cordoned.
func (r *reconciler) act(ctx context.Context, m *tidekeeperv1.NodeMaintenance, actions []decision.Action) (cordoned []string, err error) {
	var all []error
	for _, a := range actions {
		node := &corev1.Node{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: a.Node.Name}, node); err != nil {
			all = append(all, client.IgnoreNotFound(err))
			continue
		}
		if decision.NodeOf(node, a.Node.Group) != a.Node {
			continue
		}
		if err := r.patch(ctx, m, node, a.Kind); client.IgnoreNotFound(err) != nil {
			all = append(all, fmt.Errorf("%s node %s: %w", a.Kind, a.Node.Name, err))
		} else if a.Kind == decision.Cordon {
			cordoned = append(cordoned, a.Node.Name)
		}
	}
	return cordoned, errors.Join(all...)
}

// patch carries out an action on a node. It writes the node condition Drained before the
// annotations and labels. After a crash between the two writes, the annotations and labels still
// show that the action is due, so it is decided again.
func (r *reconciler) patch(ctx context.Context, m *tidekeeperv1.NodeMaintenance, node *corev1.Node, kind decision.ActionKind) error {
	if err := r.setDrained(ctx, m, node, kind); err != nil {
		return err
	}
	body, err := json.Marshal(patchOf(m, node, kind))
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	if err := r.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, body)); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Patched a node for its maintenance", "node", klog.KObj(node), "action", string(kind))
	return nil
}

// patchOf returns the JSON merge patch of an action for the annotations, labels and spec of a node.
func patchOf(m *tidekeeperv1.NodeMaintenance, node *corev1.Node, kind decision.ActionKind) map[string]any {
	metadata := map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion}
	patch := map[string]any{"metadata": metadata}
	spec := map[string]any{}
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), isDueFor(m))
	if kind == decision.MarkDue {
		taints = append(taints, corev1.Taint{Key: tidekeeperv1.MaintenanceDueTaint, Value: string(m.UID), Effect: corev1.TaintEffectPreferNoSchedule})
	}
	if kind != decision.MarkDrained && len(taints) != len(node.Spec.Taints) {
		spec["taints"] = taints
	}
	switch kind {
	case decision.MarkDue, decision.UnmarkDue:
	case decision.Cordon:
		metadata["annotations"] = map[string]any{tidekeeperv1.CordonedForMaintenanceAnnotation: m.UID}
		spec["unschedulable"] = true
	case decision.MarkDrained:
		metadata["annotations"] = map[string]any{tidekeeperv1.DrainedForMaintenanceAnnotation: m.Name}
		metadata["labels"] = map[string]any{tidekeeperv1.DrainedLabel: "true"}
	default:
		annotations := map[string]any{tidekeeperv1.CordonedForMaintenanceAnnotation: nil}
		if node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] == m.Name {
			annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] = nil
		}
		metadata["annotations"] = annotations
		metadata["labels"] = map[string]any{tidekeeperv1.DrainedLabel: nil}
		if kind == decision.Uncordon {
			spec["unschedulable"] = nil
		}
	}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return patch
}

// isDueFor returns a function that reports whether a taint marks a node as due for the
// NodeMaintenance.
func isDueFor(m *tidekeeperv1.NodeMaintenance) func(corev1.Taint) bool {
	return func(taint corev1.Taint) bool {
		return taint.Key == tidekeeperv1.MaintenanceDueTaint && taint.Value == string(m.UID)
	}
}

// setDrained writes the node condition Drained, if the action changes it, and updates node to the
// version that the API server returns.
func (r *reconciler) setDrained(ctx context.Context, m *tidekeeperv1.NodeMaintenance, node *corev1.Node, kind decision.ActionKind) error {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeDrained })
	is := i >= 0 && node.Status.Conditions[i].Status == corev1.ConditionTrue
	want := kind == decision.MarkDrained
	if is == want || kind == decision.Cordon || kind == decision.MarkDue || kind == decision.UnmarkDue {
		return nil
	}
	now := metav1.NewTime(r.clock.Now())
	condition := corev1.NodeCondition{
		Type: corev1.NodeDrained, Status: corev1.ConditionFalse, Reason: "MaintenanceEnded", Message: "in use again after NodeMaintenance " + m.Name,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if want {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, "NodeMaintenance", "drained for NodeMaintenance "+m.Name
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID},
		"status":   map[string]any{"conditions": []corev1.NodeCondition{condition}},
	})
	if err != nil {
		return fmt.Errorf("encode the node condition: %w", err)
	}
	before := node.DeepCopy()
	if err := r.client.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("write the node condition %s: %w", corev1.NodeDrained, err)
	}
	// The response may contain another client's changes since the decision. The following patch is
	// based on the response, so it must not be sent if decisions depend on these changes.
	if !sameMarks(before, node) {
		return apierrors.NewConflict(corev1.Resource("nodes"), node.Name, errors.New("the node has changed since the decision"))
	}
	return nil
}

// sameMarks reports whether two versions of a node are equal in all fields that decisions depend
// on.
func sameMarks(before, after *corev1.Node) bool {
	a, b := decision.NodeOf(before, 0), decision.NodeOf(after, 0)
	return a == b
}
