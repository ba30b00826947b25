// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// completer is the program that kubectl asks what may follow "kubectl tide".
const completer = "kubectl_complete-tide"

// completionPatience is how long a person who presses Tab waits.
const completionPatience = 3 * time.Second

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion [bash|zsh|fish|powershell]",
		Short: "Print what completes kubectl tide in a shell",
		Long: `Without an argument: the program kubectl_complete-tide, which kubectl's own
completion asks about kubectl tide; it belongs into a directory of the PATH.
With the name of a shell: a script for those who call kubectl-tide directly.`,
		Example: `  kubectl tide completion > ~/.local/bin/kubectl_complete-tide
  chmod +x ~/.local/bin/kubectl_complete-tide`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				_, err := fmt.Fprintf(a.out, "#!/bin/sh\nexec kubectl tide %s \"$@\"\n", cobra.ShellCompRequestCmd)
				return err
			}
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			default:
				return fmt.Errorf("there is no completion for %q: bash, zsh, fish or powershell", args[0])
			}
		},
	}
}

// completeFlags completes the values of the flags that all commands have.
func (a *app) completeFlags(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("namespace", a.names(func() client.ObjectList { return &corev1.NamespaceList{} }, true))
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := a.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := []string{}
		for name := range config.Contexts {
			names = append(names, name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// nameOfRestart completes the name of a ScheduledRestart, once.
func (a *app) nameOfRestart() cobra.CompletionFunc {
	return a.names(func() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} }, false)
}

// namesOfPods completes the names of pods, one after the other.
func (a *app) namesOfPods() cobra.CompletionFunc {
	complete := a.names(func() client.ObjectList { return &corev1.PodList{} }, true)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		names, directive := complete(cmd, args, toComplete)
		return slices.DeleteFunc(names, func(name string) bool {
			name, _, _ = strings.Cut(name, "\t")
			return slices.Contains(args, name)
		}), directive
	}
}

// names completes the names of the objects that there are. What goes wrong is
// not told: a person is typing.
func (a *app) names(list func() client.ObjectList, always bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 && !always {
			return nil, directive
		}
		c, err := a.client()
		if err != nil {
			return nil, directive
		}
		namespace, err := a.namespace(false)
		if err != nil {
			return nil, directive
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		objects := list()
		options := []client.ListOption{}
		switch objects.(type) {
		case *tidekeeperv1.ScheduledRestartList, *corev1.PodList:
			options = append(options, client.InNamespace(namespace))
		}
		if err := c.List(ctx, objects, options...); err != nil {
			return nil, directive
		}
		return namesOf(objects), directive
	}
}

func namesOf(objects client.ObjectList) []string {
	names := []string{}
	switch objects := objects.(type) {
	case *tidekeeperv1.ScheduledRestartList:
		for i := range objects.Items {
			r := &objects.Items[i]
			names = append(names, fmt.Sprintf("%s\t%s of %s %s", r.Name, r.Spec.Schedule, r.Spec.TargetRef.Kind, r.Spec.TargetRef.Name))
		}
	case *tidekeeperv1.NodePoolList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name)
		}
	case *corev1.PodList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name+"\t"+string(objects.Items[i].Status.Phase))
		}
	case *corev1.NamespaceList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name)
		}
	}
	return names
}
