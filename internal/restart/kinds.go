// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of the group apps that can be restarted.
const (
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
	KindDaemonSet   = "DaemonSet"
)

// Kinds returns all kinds that can be restarted.
func Kinds() []string { return []string{KindDeployment, KindStatefulSet, KindDaemonSet} }

// NewWorkload returns an empty workload of one of the [Kinds].
func NewWorkload(kind string) client.Object {
	switch kind {
	case KindDeployment:
		return &appsv1.Deployment{}
	case KindStatefulSet:
		return &appsv1.StatefulSet{}
	default:
		return &appsv1.DaemonSet{}
	}
}
