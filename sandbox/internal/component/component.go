// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component contains the names of the programs in the sandbox binary, and of the
// controllers in the controller manager. It does not link the programs, as package programs does.
package component

// Names of the compiled-in programs. The base name of argv[0] selects the program.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kubelets          = "kubelets"
	// RealNode runs PID 1 of a real node.
	RealNode = "sandbox-real-node"
	// InPod runs a program in an environment that looks like a pod.
	InPod = "sandbox-in-pod"
	// Sweeper kills the processes that operators leave behind.
	Sweeper = "sandbox-sweeper"
)
