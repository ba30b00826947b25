// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods implements kubectl tide pods. It needs neither Tidekeeper's kinds nor its manager.
//
//	command.go          the command and its subcommands
//	selection.go        selecting the pods of a command
//	watch.go, lines.go  each pod transition as it happens
//	timeline.go         the duration of each stage of a pod's start-up
//	slow.go, stages.go  the slowest start-ups, and statistics about each stage
package pods

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// podKind lists the names by which the command line refers to pods.
var podKind = cmdutil.Kind{Name: "Pod", Resources: []string{"pod", "pods", "po"}}

func emptyList() client.ObjectList { return &corev1.PodList{} }

// NewCommand returns the command pods, with its subcommands.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pods",
		Aliases: []string{"pod", "po"},
		Short:   "Pod start-up: transitions, durations, slow pods",
		Long: `pods shows how pods start. It works on any cluster: neither Tidekeeper's kinds
nor its manager are needed.`,
		Example: `  kubectl tide pods watch -l app=web          # each transition as it happens
  kubectl tide pods timeline web-5d8f-x2v9p   # where the time went
  kubectl tide pods slow -A --top 20          # the slowest`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWatchCommand(e), newTimelineCommand(e), newSlowCommand(e))
	return cmd
}
