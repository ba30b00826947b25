// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// completer is the name of the executable that kubectl calls for completions of "kubectl tide".
const completer = "kubectl_complete-tide"

// completionOptions holds the arguments of the command completion.
type completionOptions struct {
	*cmdutil.Env
	root  *cobra.Command
	shell string
}

func newCompletionCommand(e *cmdutil.Env) *cobra.Command {
	o := &completionOptions{Env: e}
	return &cobra.Command{
		Use:   "completion [bash|zsh|fish|powershell]",
		Short: "Print the shell completion of kubectl tide",
		Long: `Without an argument, completion prints the program kubectl_complete-tide, which
kubectl's own completion runs for kubectl tide: save it in a directory on your PATH.
With the name of a shell, it prints a completion script for kubectl-tide.`,
		Example: `  kubectl tide completion > ~/.local/bin/kubectl_complete-tide
  chmod +x ~/.local/bin/kubectl_complete-tide`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MaximumNArgs(1),
		RunE:      cmdutil.RunE(o),
	}
}

// Complete implements [cmdutil.Options].
func (o *completionOptions) Complete(cmd *cobra.Command, args []string) error {
	o.root = cmd.Root()
	if len(args) > 0 {
		o.shell = args[0]
	}
	return nil
}

// Validate implements [cmdutil.Options].
func (o *completionOptions) Validate() error { return nil }

// Run implements [cmdutil.Options].
func (o *completionOptions) Run(context.Context) error {
	switch o.shell {
	case "":
		_, err := fmt.Fprintf(o.Console.Out, "#!/bin/sh\nexec kubectl tide %s \"$@\"\n", cobra.ShellCompRequestCmd)
		return err
	case "bash":
		return o.root.GenBashCompletionV2(o.Console.Out, true)
	case "zsh":
		return o.root.GenZshCompletion(o.Console.Out)
	case "fish":
		return o.root.GenFishCompletion(o.Console.Out, true)
	case "powershell":
		return o.root.GenPowerShellCompletionWithDesc(o.Console.Out)
	default:
		return fmt.Errorf("no completion for %q: write bash, zsh, fish or powershell", o.shell)
	}
}

// completeFlags registers shell completion functions for the flags that all commands share.
func completeFlags(e *cmdutil.Env, cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("namespace", e.Kubeconfig.CompleteNames(func() client.ObjectList { return &corev1.NamespaceList{} }))
	_ = cmd.RegisterFlagCompletionFunc("context", e.Kubeconfig.CompleteContext)
}
