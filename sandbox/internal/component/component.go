// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component holds the programs that are compiled into the sandbox binary: the Kubernetes
// control plane, etcd, kubectl, the simulated kubelets, the process of a real node, the process of
// an operator, and the sweeper, which ends the remaining processes of operators.
//
// All but the last four are the upstream programs, started through the upstream
// command; only their main functions are written here.
package component

import "tidekeeper.dev/tidekeeper/sandbox/internal/incluster"

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
	InPod = incluster.Program
	// Sweeper ends the remaining processes of operators.
	Sweeper = incluster.Sweeper
)

// Main is the entry point of a compiled-in program. It reads os.Args, like the
// main function of the program would, and returns the exit code.
type Main func() int

var mains = map[string]Main{
	Etcd:              etcdMain,
	APIServer:         apiServerMain,
	ControllerManager: controllerManagerMain,
	Scheduler:         schedulerMain,
	Kubectl:           kubectlMain,
	Kubelets:          kubeletsMain,
	RealNode:          realNodeMain,
	InPod:             inPodMain,
	Sweeper:           sweeperMain,
}

// Lookup returns the program of that name, or nil if there is none.
func Lookup(name string) Main { return mains[name] }
