// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is the API server, the controller manager and the scheduler of one
// release of Kubernetes, which it is compiled with: 'sandbox up --kubernetes 1.34' runs
// that of 1.34. It is the program by whose name it is started.
//
// It is a module of its own, whose go.mod depends on the release: versions/1.34.mod and
// so on, which ./write writes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	// Time zones of CronJobs must not depend on what the machine has installed.
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	// Registers the client-go metrics of all control plane programs.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	var command *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	default:
		fmt.Fprintf(os.Stderr, "%s: the programs of Kubernetes %s, for 'sandbox up --kubernetes'\n", name, version.Get().GitVersion)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}
