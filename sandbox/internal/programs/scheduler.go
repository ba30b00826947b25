// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"k8s.io/component-base/cli"
	// Register the client-go metrics, as all control plane programs do.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func schedulerMain() int {
	return cli.Run(app.NewSchedulerCommand())
}
