// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
)

// join waits until the sandbox that another command has started in the data directory is ready, and
// checks that this sandbox satisfies the flags. It returns false if no sandbox is running there.
func join(cmd *cobra.Command, o cluster.Options) (joined bool, _ error) {
	if !o.Dir.Control().Running() {
		return false, nil
	}
	s, err := o.Dir.Control().Await(cmd.Context())
	switch {
	case err != nil && !o.Dir.Control().Running():
		return false, nil // The other command's sandbox has stopped or failed to start.
	case err != nil:
		return true, err
	}
	if err := fits(cmd.Flags(), o, s); err != nil {
		return true, err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "A sandbox already runs in %s (pid %d).\n", o.Dir, s.PID)
	return true, nil
}

// fits returns an error that names the flags set by the user that the running sandbox does not
// satisfy, or nil if there are none.
func fits(flags *pflag.FlagSet, o cluster.Options, s cluster.Status) error {
	other := differing(flags, o, s)
	if len(other) == 0 {
		return nil
	}
	return fmt.Errorf("a sandbox already runs in %s (pid %d) and was started without %s: stop it first with 'sandbox down%s', or leave that out",
		o.Dir, s.PID, strings.Join(other, " "), at(o.Dir))
}

// differing returns the flags set by the user that the running sandbox does not satisfy. A sandbox
// with more nodes than --nodes satisfies this flag. No running sandbox satisfies --fresh.
func differing(flags *pflag.FlagSet, o cluster.Options, s cluster.Status) []string {
	running := s.Delays
	delays := pflag.NewFlagSet("", pflag.ContinueOnError)
	running.AddFlags(delays)
	var other []string
	flags.Visit(func(f *pflag.Flag) {
		same := true
		switch f.Name {
		case "nodes":
			same = o.Nodes <= s.Nodes
		case "real-nodes":
			same = o.RealNodes == s.RealNodes
		case "kubeconfig":
			same = o.Kubeconfig == s.Kubeconfig || o.Kubeconfig == ""
		case "audit":
			same = o.Audit == (s.AuditLog != "")
		case "fresh":
			same = !o.Fresh
		case "kubernetes":
			same = o.Kubernetes == s.Kubernetes
		case "emulated-version":
			same = o.EmulatedVersion == s.EmulatedVersion
		case "feature-gates":
			same = o.FeatureGates == s.FeatureGates
		case "runtime-config":
			same = o.RuntimeConfig == s.RuntimeConfig
		case "keep-history":
			same = o.KeepHistory == s.KeepHistory
		case "pod-events":
			same = o.PodEvents == s.PodEvents
		case "owner":
			same = o.Owner.PID == s.Owner
		default:
			if delay := delays.Lookup(f.Name); delay != nil {
				same = delay.Value.String() == f.Value.String()
			}
		}
		if !same {
			other = append(other, fmt.Sprintf("--%s=%s", f.Name, f.Value))
		}
	})
	return other
}
