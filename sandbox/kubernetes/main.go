// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes contains the API server, the controller manager and the scheduler of one
// Kubernetes release: 'sandbox up --kubernetes 1.34' runs the binary that was compiled from release
// 1.34. The name under which the binary is started selects the program.
//
// The command is a separate module, because its go.mod depends on the release: ./write generates
// versions/1.34.mod and the files for other releases.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	// Embed the time zone database, so that CronJob time zones do not depend on the host's files.
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	// Register the client-go metrics, as all control plane programs do.
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
