// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	// Time zones of CronJobs must not depend on the machine.
	_ "time/tzdata"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func controllerManagerMain() int {
	return cli.Run(app.NewControllerManagerCommand())
}
