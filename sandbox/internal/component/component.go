// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component contains the names of the programs in the sandbox binary, and of the
// controllers in the controller manager. Unlike package programs, it does not link the programs
// themselves.
package component

// Names of the compiled-in programs. The base name of argv[0] selects the program.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kubelets          = "kubelets"
	// RealNode is PID 1 of a real node, and starts the node's kubelet and containerd.
	RealNode = "sandbox-real-node"
	// InPod runs a program in an environment that looks like a pod.
	InPod = "sandbox-in-pod"
	// Sweeper kills the processes that operators leave behind.
	Sweeper = "sandbox-sweeper"
)
