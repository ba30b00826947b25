// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component names the programs that are compiled into the sandbox binary, and the
// controllers of one of them. It links none of them: package programs has them.
package component

// Names of the programs, which are also the names they are started under: the
// binary looks at the base name of argv[0] to decide which program it is.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kubelets          = "kubelets"
	// RealNode is the first process of a real node, which is named after the node.
	RealNode = "sandbox-real-node"
	// InPod becomes a program that believes it is in a pod.
	InPod = "sandbox-in-pod"
	// Sweeper ends the remaining processes of operators.
	Sweeper = "sandbox-sweeper"
)
