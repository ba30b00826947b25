// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// excludeNodes excludes NotReady nodes from the state of a workload that runs a pod on each node,
// such as a DaemonSet. It excludes no nodes unless the manager watches both nodes and pods.
func (r *targets) excludeNodes(ctx context.Context, t *target, state *workload.State, active *tidekeeperv1.ActiveRestart) error {
	if t.kind.Exclude == nil {
		return nil
	}
	absent, err := r.absent(ctx, t.object, state, active)
	if notCached := (*cache.ErrResourceNotCached)(nil); errors.As(err, &notCached) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.kind.Exclude(t.object, state, absent)
}

// absent counts the NotReady nodes that have a pod of the workload. It reads pods only if the
// cluster has NotReady nodes.
func (r *targets) absent(ctx context.Context, object client.Object, state *workload.State, active *tidekeeperv1.ActiveRestart) (workload.Absence, error) {
	absent, err := notReady(ctx, r.cache)
	if err != nil || len(absent) == 0 {
		return workload.Absence{}, err
	}
	pods, err := r.pods.OnNodes(podsOf(object.GetNamespace(), state), func(node string) bool { return absent[node] != nil })
	if err != nil {
		return workload.Absence{}, fmt.Errorf("list the pods of %s: %w", state, err)
	}
	return absenceOf(pods, absent, active), nil
}

// notReady returns the NotReady nodes, keyed by name.
func notReady(ctx context.Context, reader client.Reader) (map[string]*corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := reader.List(ctx, nodes, client.MatchingFields{index.NodeNotReady: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the nodes that are not ready: %w", err)
	}
	found := map[string]*corev1.Node{}
	for i := range nodes.Items {
		found[nodes.Items[i].Name] = &nodes.Items[i]
	}
	return found, nil
}

// absenceOf counts the NotReady nodes that have a pod of the workload.
func absenceOf(pods []*corev1.Pod, notReady map[string]*corev1.Node, active *tidekeeperv1.ActiveRestart) workload.Absence {
	// found describes a NotReady node with pods of the workload. desired is true if the workload
	// should have a pod on the node. isNew is true if a pod on the node was created since the
	// restart started.
	type found struct{ desired, isNew bool }
	on := map[string]found{}
	for _, pod := range pods {
		node, ok := notReady[pod.Spec.NodeName]
		if !ok {
			continue
		}
		f := on[node.Name]
		f.desired = f.desired || tolerates(pod, node)
		f.isNew = f.isNew || active != nil && pod.DeletionTimestamp == nil && !pod.CreationTimestamp.Time.Before(active.StartedTime.Truncate(time.Second))
		on[node.Name] = f
	}
	absent := workload.Absence{Nodes: int32(len(on))}
	for _, f := range on {
		if !f.desired {
			continue
		}
		absent.Desired++
		if !f.isNew {
			absent.Old++
		}
	}
	return absent
}

// tolerates reports whether the DaemonSet controller would currently create the pod on the node.
// Most DaemonSets do not tolerate the NoSchedule taint of a NotReady node.
func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, true)
	return !untolerated
}
