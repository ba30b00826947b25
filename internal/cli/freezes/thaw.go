// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freezes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// thawOptions holds the flags and arguments of the command thaw.
type thawOptions struct {
	*cmdutil.Env
	dryRun cmdutil.DryRun
	name   string
	// uid is the UID of the Freeze to delete. If it is empty, the name alone selects the Freeze.
	uid types.UID
}

func newThawCommand(e *cmdutil.Env) *cobra.Command {
	o := &thawOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "thaw [NAME]",
		Short: "Lift a freeze before its end",
		Long: `thaw deletes a Freeze. Restarts that it held back start now, as the budget allows, unless
their deadline has passed; taints that it held back are added. Without a name, thaw deletes
the only Freeze that has not ended.`,
		Example: `  kubectl tide thaw
  kubectl tide thaw christmas --dry-run=server`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes one NAME at most, got %d: see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: e.Kubeconfig.CompleteOne(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.dryRun.AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *thawOptions) Complete(_ *cobra.Command, args []string) error {
	names, err := freezeKind.Names(args)
	if len(names) > 0 {
		o.name = names[0]
	}
	return err
}

// Validate implements [cmdutil.Options].
func (o *thawOptions) Validate() error { return o.dryRun.Validate() }

// Run implements [cmdutil.Options].
func (o *thawOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	done, err := o.lift(ctx, c)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Console.Out, done)
	return nil
}

// lift deletes the selected Freeze, and returns the outcome as a sentence.
func (o *thawOptions) lift(ctx context.Context, c client.Client) (string, error) {
	f := &tidekeeperv1.Freeze{}
	var err error
	if o.name == "" {
		if f, err = o.only(ctx, c); err != nil {
			return "", err
		}
	} else if err := c.Get(ctx, client.ObjectKey{Name: o.name}, f); err != nil {
		return "", cmdutil.AboutKind(err, freezeKind.Name, "", o.name)
	}
	if o.uid != "" && f.UID != o.uid {
		return "", fmt.Errorf("%s is a different Freeze now, created at %s: nothing was lifted", displayName(f.Name), f.CreationTimestamp.UTC().Format(time.RFC3339))
	}
	options := []client.DeleteOption{client.Preconditions{UID: &f.UID}}
	if o.dryRun == cmdutil.DryRunServer {
		options = append(options, client.DryRunAll)
	}
	if err := c.Delete(ctx, f, options...); err != nil {
		return "", cmdutil.AboutKind(err, freezeKind.Name, "", f.Name)
	}
	done := "lifted"
	if !o.Now().Before(f.Spec.Until.Time) {
		done = "deleted; it had already ended"
	}
	return displayName(f.Name) + " " + done + o.dryRun.Suffix(), nil
}

// only returns the only Freeze that has not ended. It returns an error if there is no such Freeze,
// or more than one.
func (o *thawOptions) only(ctx context.Context, c client.Client) (*tidekeeperv1.Freeze, error) {
	list := &tidekeeperv1.FreezeList{}
	if err := c.List(ctx, list); err != nil {
		return nil, cmdutil.AboutKind(err, freezeKind.Name, "", "")
	}
	var names []string
	var found *tidekeeperv1.Freeze
	for i := range list.Items {
		if f := &list.Items[i]; o.Now().Before(f.Spec.Until.Time) {
			names, found = append(names, f.Name), f
		}
	}
	switch len(names) {
	case 0:
		return nil, &cmdutil.CodedError{Code: cmdutil.ExitNotFound, Err: fmt.Errorf("there is no %s that has not ended", freezeKind.Name)}
	case 1:
		return found, nil
	default:
		return nil, fmt.Errorf("there are %d Freezes that have not ended: name one of %s", len(names), strings.Join(names, ", "))
	}
}
