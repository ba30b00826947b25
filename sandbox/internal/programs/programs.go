// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs contains the programs that are compiled into the sandbox binary: the Kubernetes
// control plane, etcd, kubectl, the simulated kubelets, PID 1 of a real node, the process that runs
// an operator as if in a pod, and the sweeper, which kills the processes that operators leave
// behind.
//
// The last four are the sandbox's own. The others are the upstream programs, run through their
// upstream commands, and only their main functions are in this package. Only main packages may
// import this package: the tests of an importing package would compile Kubernetes, which takes very
// long with the race detector.
package programs

import (
	"os"
	"runtime/debug"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

// Main is the entry point of a compiled-in program. Like a main function, it reads os.Args. It
// returns the exit code.
type Main func() int

var mains = map[string]Main{
	component.Etcd:              etcdMain,
	component.APIServer:         collectingLess(apiServerMain),
	component.ControllerManager: collectingLess(controllerManagerMain),
	component.Scheduler:         collectingLess(schedulerMain),
	component.Kubectl:           kubectlMain,
	component.Kubelets:          kubeletsMain,
	component.RealNode:          realNodeMain,
	component.InPod:             inPodMain,
	component.Sweeper:           sweeperMain,
}

// Lookup returns the entry point of the program with the given name, or nil if there is none.
func Lookup(name string) Main { return mains[name] }

// gcPercent is the value of GOGC for the control plane, unless the environment sets it. With 300 pods
// that roll out, this saves a tenth of the processor time of a sandbox, and costs a seventh more
// memory.
const gcPercent = 200

// collectingLess returns a program that collects garbage less often than by default.
func collectingLess(main Main) Main {
	return func() int {
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(gcPercent)
		}
		return main()
	}
}
