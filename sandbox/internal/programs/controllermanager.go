// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	// Embed the time zone database, so that CronJob time zones do not depend on the host's files.
	_ "time/tzdata"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func controllerManagerMain() int {
	return cli.Run(app.NewControllerManagerCommand())
}
