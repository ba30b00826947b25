// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs has the programs that are compiled into the sandbox binary: the Kubernetes control plane,
// etcd, kubectl, the simulated kubelets, the process of a real node, the process of an operator, and the
// sweeper, which kills the remaining processes of operators.
//
// All except the last four are the upstream programs, run through their upstream commands; only their main
// functions are in this package. Only main packages may import it: an importing package compiles Kubernetes,
// so that its tests cannot use the race detector.
package programs

import "tidekeeper.dev/tidekeeper/sandbox/internal/component"

// Main is the entry point of a compiled-in program. It reads os.Args, like the
// main function of the program would, and returns the exit code.
type Main func() int

var mains = map[string]Main{
	component.Etcd:              etcdMain,
	component.APIServer:         apiServerMain,
	component.ControllerManager: controllerManagerMain,
	component.Scheduler:         schedulerMain,
	component.Kubectl:           kubectlMain,
	component.Kubelets:          kubeletsMain,
	component.RealNode:          realNodeMain,
	component.InPod:             inPodMain,
	component.Sweeper:           sweeperMain,
}

// Lookup returns the program of that name, or nil if there is none.
func Lookup(name string) Main { return mains[name] }
