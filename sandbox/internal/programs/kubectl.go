// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"

	// Credential plugins that a kubeconfig may name.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func kubectlMain() int {
	// Plugins and .kuberc are handled while the command is being built, before
	// its flags are parsed, so the verbosity has to be set by hand.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
