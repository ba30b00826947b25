// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component has the names of the programs in the sandbox binary, and of the controllers of the
// controller manager. It does not link the programs: package programs does.
package component

// Names of the programs. The binary selects the program by the base name of argv[0].
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kubelets          = "kubelets"
	// RealNode is the first process of a real node.
	RealNode = "sandbox-real-node"
	// InPod starts a program in an environment that looks like a pod.
	InPod = "sandbox-in-pod"
	// Sweeper kills the remaining processes of operators.
	Sweeper = "sandbox-sweeper"
)
