// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate implements kubectl tide migrate. migrate.go defines the command, read.go reads
// the objects of the two original operators, and print.go prints the converted objects.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/migrate"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// formats lists the valid values of the flag -o.
var formats = []string{"yaml", "json", "commands"}

// options holds the flags and arguments of the command migrate.
type options struct {
	*cmdutil.Env
	files       []string
	recursive   bool
	fromCluster bool
	convert     migrate.Options
	format      string
}

// NewCommand returns the command migrate.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	o := &options{Env: e}
	cmd := &cobra.Command{
		Use:   "migrate (-f FILE|DIRECTORY|- ... | --from-cluster)",
		Short: "Convert NodePools and Erus of the original operators",
		Long: `migrate reads NodePools of nodes.lailin.xyz/v1, Erus of mtsre.meitu.com/v1 and
Deployments with the annotation mtsre.meitu.com/eru, and prints NodePools and
ScheduledRestarts of tidekeeper.dev/v1 for kubectl apply -f -. It changes nothing.

Each setting that cannot be converted is a line on stderr. So is each change that takes
a command because the object is not Tidekeeper's, such as an annotation on a
Deployment; -o commands prints only these commands.

docs/tasks/move-from-the-original-operators.md has the order of the steps, so that nothing is restarted twice.

Exit codes: 0 everything was converted, 2 stderr lists manual steps, 1 the input cannot
be read and nothing is printed, 4 cluster unreachable, 5 not allowed to read some of the
objects; the others are printed.`,
		Example: `  kubectl tide migrate -f old/ -R > tidekeeper.yaml
  kubectl tide migrate --from-cluster --suspended | kubectl apply -f -
  kubectl tide migrate --from-cluster --time-zone Asia/Shanghai | kubectl apply -f -
  kubectl tide migrate --from-cluster --time-zone Asia/Shanghai -o commands > hand-over.sh`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "files and directories to read, or - for stdin")
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "R", false, "also read the subdirectories of -f")
	cmd.Flags().BoolVar(&o.fromCluster, "from-cluster", false, "read the objects from the cluster; with -n, Erus and Deployments of that namespace only")
	cmd.Flags().StringVar(&o.convert.TimeZone, "time-zone", "", "IANA name of the time zone that the original controller ran in (default UTC, with a note on stderr)")
	cmd.Flags().BoolVar(&o.convert.Suspended, "suspended", false, "suspend all schedules, for as long as the original controller still runs")
	cmd.Flags().StringVarP(&o.format, "output", "o", "yaml", strings.Join(formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagsMutuallyExclusive("filename", "from-cluster")
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *options) Complete(*cobra.Command, []string) error { return nil }

// Validate implements [cmdutil.Options].
func (o *options) Validate() error {
	if !slices.Contains(formats, o.format) {
		return fmt.Errorf("-o %s: write one of %s", o.format, strings.Join(formats, ", "))
	}
	if _, err := schedule.Parse("@daily", o.convert.TimeZone); err != nil {
		return fmt.Errorf("--time-zone: %w", err)
	}
	if !o.fromCluster && len(o.files) == 0 {
		return errors.New("nothing to read: give -f FILE, -f DIRECTORY, -f - or --from-cluster")
	}
	return nil
}

// Run implements [cmdutil.Options].
func (o *options) Run(ctx context.Context) error {
	objects, complete, err := o.read(ctx)
	var partial *partialError
	if err != nil && !errors.As(err, &partial) {
		return err
	}
	o.convert.Complete = complete
	byHand, printErr := o.print(migrate.Convert(objects, o.convert))
	switch {
	case printErr != nil:
		return printErr
	case partial != nil:
		return partial
	case byHand > 0:
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	default:
		return nil
	}
}
