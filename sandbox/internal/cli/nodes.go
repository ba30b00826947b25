// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
)

func newNodes(s *target) *cobra.Command {
	var message string
	notReady := &cobra.Command{
		Use:   "not-ready NAME",
		Short: "Make the kubelet of a node report that it is not ready",
		Long: `Make the kubelet of a node report that it is not ready, until 'nodes ready'. Until
then it also leaves the pods of the node alone: none starts, none ends.`,
		Example: `  sandbox nodes not-ready node-3 --message "disk on fire"`,
		Args:    arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return setNotReady(cmd, s.client, args[0], true, message)
		},
	}
	notReady.Flags().StringVar(&message, "message", "", "the message of the condition Ready")
	ready := &cobra.Command{
		Use:     "ready NAME",
		Short:   "Make the kubelet of a node report that it is ready",
		Example: `  sandbox nodes ready node-3`,
		Args:    arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return setNotReady(cmd, s.client, args[0], false, "")
		},
	}
	return group(&cobra.Command{Use: "nodes", Short: "Add nodes, make them not ready and ready again, and give them images"},
		newNodesAdd(s), notReady, ready, newNodesLoadImage(s))
}

// setNotReady makes a node's simulated kubelet report that the node is not ready, with the given
// message. If `value` is false, the kubelet reports that the node is ready again.
func setNotReady(cmd *cobra.Command, connect func(context.Context) (kubernetes.Interface, error), name string, value bool, message string) error {
	client, err := connect(cmd.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), 30*time.Second,
		errors.New("its kubelet did not report in 30 s: see 'sandbox status'"))
	defer cancel()
	err = node.SetNotReady(ctx, client, name, value, message)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no node %q: see 'sandbox kubectl get nodes'", name)
	case err != nil && context.Cause(ctx) != nil:
		return fmt.Errorf("node %s: %w", name, context.Cause(ctx))
	case err != nil:
		return err
	}
	state := "ready"
	if value {
		state = "not ready"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Node %s is %s.\n", name, state)
	return nil
}
