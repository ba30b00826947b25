// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"tidekeeper.dev/tidekeeper/internal/manager"
)

// addFlags adds the flag --timeout, and the manager's flags named in shared, to a command. `until`
// completes the help text of --timeout. addFlags panics if the manager has no flag with a name in
// shared.
func addFlags(cmd *cobra.Command, opts *manager.Options, timeout *time.Duration, until string, shared ...string) {
	var sets cliflag.NamedFlagSets
	own := sets.FlagSet(cmd.Name())
	own.DurationVar(timeout, "timeout", *timeout, "maximum time to wait until "+until)
	all := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		all.AddFlagSet(set)
	}
	for _, name := range shared {
		flag := all.Lookup(name)
		if flag == nil {
			panic(fmt.Sprintf("tidekeeper %s: the manager has no flag --%s", cmd.Name(), name))
		}
		own.AddFlag(flag)
	}
	cmd.Flags().AddFlagSet(own)
	cliflag.SetUsageAndHelpFunc(cmd, sets, 0)
}

func onlyFlags(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown argument %q: %s takes only flags, see %[2]s --help", args[0], cmd.CommandPath())
	}
	return nil
}
