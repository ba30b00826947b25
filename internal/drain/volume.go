// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
)

// Volumes holds the PersistentVolumes that are bound to PersistentVolumeClaims, and the nodes that
// may be able to use them.
type Volumes struct {
	// Of maps the namespace and name of each bound PersistentVolumeClaim to its PersistentVolume.
	Of map[[2]string]*corev1.PersistentVolume
	// Nodes lists all nodes of the cluster.
	Nodes []*corev1.Node
}

// blockers returns a blocker for each of the pod's PersistentVolumes that no other node can use.
func (v *Volumes) blockers(node *corev1.Node, pod *corev1.Pod) (all []Blocker) {
	for i := range pod.Spec.Volumes {
		claim := pod.Spec.Volumes[i].PersistentVolumeClaim
		if claim == nil {
			continue
		}
		pv := v.Of[[2]string{pod.Namespace, claim.ClaimName}]
		if pv == nil || v.usableElsewhere(pv, node) {
			continue
		}
		all = append(all, Blocker{
			Reason: LocalVolume, Object: "PersistentVolume/" + pv.Name,
			Message: fmt.Sprintf("no other node can use the PersistentVolume %s of its claim %s, so that it waits for this node", pv.Name, claim.ClaimName),
			Advice:  "move the data first, or accept that it is down until the node is back",
		})
	}
	return all
}

// usableElsewhere reports whether the volume can be used on any other node that is ready and
// schedulable.
func (v *Volumes) usableElsewhere(pv *corev1.PersistentVolume, node *corev1.Node) bool {
	for _, other := range v.Nodes {
		if other.Name == node.Name || other.Spec.Unschedulable || !nodes.IsReady(other) {
			continue
		}
		if volume.CheckNodeAffinity(pv, other.Labels) == nil {
			return true
		}
	}
	return false
}
