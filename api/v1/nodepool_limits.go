// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"
	"strings"
)

// Bounds of a NodePool, as in the kubebuilder markers of its types. A test compares the two.
const (
	// MaxPoolNameLength is the maximum length of the name of a NodePool, which
	// becomes part of a label key.
	MaxPoolNameLength = 63
	// MaxPoolLabels is the maximum number of spec.labels.
	MaxPoolLabels = 64
	// MaxPoolAnnotations is the maximum number of spec.annotations.
	MaxPoolAnnotations = 64
	// MaxPoolTaints is the maximum number of spec.taints.
	MaxPoolTaints = 32
	// MaxLabelValueLength is the maximum length of a [LabelValue].
	MaxLabelValueLength = 63
	// MaxAnnotationValueLength is the maximum length of an [AnnotationValue].
	MaxAnnotationValueLength = 1024
	// MaxHandlerLength is the maximum length of spec.handler.
	MaxHandlerLength = 63
)

// GuardedKeys are keys that no NodePool can set, because they belong to the kubelet, the cloud
// provider, the node lifecycle controller or Tidekeeper. A key with a trailing slash is a
// prefix.
//
// +kubebuilder:object:generate=false
type GuardedKeys []string

// Has reports whether key is a guarded key or begins with a guarded prefix.
func (g GuardedKeys) Has(key string) bool {
	return slices.ContainsFunc(g, func(guarded string) bool {
		return key == guarded || strings.HasSuffix(guarded, "/") && strings.HasPrefix(key, guarded)
	})
}

// The guarded keys, as in the CEL rules of [NodePoolSpec]. A test compares the two.
var (
	// GuardedLabels are the keys that spec.labels must not contain.
	GuardedLabels = GuardedKeys{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
		"node.kubernetes.io/instance-type", "node.kubernetes.io/windows-build",
		"topology.kubernetes.io/", "beta.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "kubelet.kubernetes.io/",
		"tidekeeper.dev/",
	}
	// GuardedAnnotations are the keys that spec.annotations must not contain.
	GuardedAnnotations = GuardedKeys{
		"node.alpha.kubernetes.io/ttl", "alpha.kubernetes.io/provided-node-ip",
		"volumes.kubernetes.io/controller-managed-attach-detach", "volumes.kubernetes.io/keep-terminated-pod-volumes",
		"csi.volume.kubernetes.io/nodeid",
		"kubeadm.alpha.kubernetes.io/",
		"tidekeeper.dev/",
	}
	// GuardedTaints are the keys that spec.taints must not contain.
	GuardedTaints = GuardedKeys{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "tidekeeper.dev/"}
)
