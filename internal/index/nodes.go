// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
)

// NodeNotReady is the name of the index of nodes that are not Ready. Its only value is "true";
// Ready nodes are not indexed.
const NodeNotReady = "status.notReady"

// NodesNotReady returns the index [NodeNotReady], for a controller's definition.
func NodesNotReady() Index {
	return Index{Field: NodeNotReady, Object: &corev1.Node{}, Values: nodeNotReady}
}

func nodeNotReady(object client.Object) []string {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	if nodes.IsReady(node) {
		return nil
	}
	return []string{"true"}
}
