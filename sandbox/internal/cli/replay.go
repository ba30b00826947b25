// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

func newReplay() *cobra.Command {
	var f exploreFlags
	var goTest string
	cmd := &cobra.Command{
		Use:   "replay FILE [-- PROGRAM [ARGUMENTS...]]",
		Short: "Play a finding of 'sandbox explore' or 'sandbox fuzz' again",
		Long: `Play a finding of 'sandbox explore' or 'sandbox fuzz' again: with the same operator, or with another,
such as a version with the mistake fixed. Relative paths in the finding, such as those of the operator
and of the installed manifests, are relative to the working directory. Flags that are not given are as
they were when it was found.

It learns from undisturbed runs first, as each installation has other certificates, ports and names.

It ends with exit code 0 if the operator survives, and 2 if the finding comes again or, which it says,
another problem comes.`,
		Example: `  sandbox replay explore/finding-1a2b3c4d.yaml
  sandbox replay explore/finding-1a2b3c4d.yaml -- ./my-operator-fixed

  # A test that fails until the operator is fixed.
  sandbox replay explore/finding-1a2b3c4d.yaml --as-go-test test/findings/lost_update_test.go -- bin/manager`,
		Args: atLeastOne("the file of a finding"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if goTest != "" {
				return writeGoTest(goTest, args[0], args[1:])
			}
			ctx, stop := untilHangup(cmd.Context())
			defer stop()
			return runReplay(ctx, cmd, f, args)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&goTest, "as-go-test", "", "write a Go test to this file that plays the finding and fails if a problem is found; the finding is not played now")
	addJudging(cmd, &f)
	return cmd
}

// asFound returns the flags of a replay. A flag that the user has not set has the same value as in
// the command that made the finding.
func (f exploreFlags) asFound(given *pflag.FlagSet, found results.Flags) exploreFlags {
	for name, flag := range map[string]struct {
		value *time.Duration
		found time.Duration
	}{
		"quiet": {&f.quiet, found.Quiet.Duration}, "settle": {&f.settle, found.Settle.Duration},
		"patience": {&f.patience, found.Patience.Duration}, "hold": {&f.hold, found.Hold.Duration},
	} {
		if flag.found > 0 && !given.Changed(name) {
			*flag.value = flag.found
		}
	}
	if !given.Changed("fail-on-log") {
		f.failOnLog = found.FailOnLog
	}
	return f
}

func runReplay(ctx context.Context, cmd *cobra.Command, f exploreFlags, args []string) error {
	if fuzz.IsFinding(args[0]) {
		return replayFuzz(ctx, cmd, f, args[0], args[1:])
	}
	finding, err := explore.Tool.ReadFinding(args[0])
	if err != nil {
		return err
	}
	program, err := finding.Place(args[1:], finding.Workload.Install)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	e, err := f.asFound(cmd.Flags(), finding.Flags).explorer(finding.Workload, program)
	if err != nil {
		return err
	}
	e.Testbeds.Dir = os.TempDir()
	defer e.Testbeds.Close()
	again, err := e.Replay(ctx, finding, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if again == nil {
		return tellGone(cmd, "fault")
	}
	return tellAgain(cmd, explore.Tool, again, finding.Same(again), args[0])
}

// replayFuzz replays a finding of `sandbox fuzz`, which it reads from a file.
func replayFuzz(ctx context.Context, cmd *cobra.Command, f exploreFlags, file string, program []string) error {
	finding, err := fuzz.Tool.ReadFinding(file)
	if err != nil {
		return err
	}
	if program, err = finding.Place(program, finding.Install); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	w := finding.Workload()
	if err := w.Check(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fuzzer, err := f.asFound(cmd.Flags(), finding.Flags).fuzzer(w, program)
	if err != nil {
		return err
	}
	fuzzer.Sample, fuzzer.Others, fuzzer.Ignore, fuzzer.Busy, fuzzer.Ready = finding.Object, finding.Others, finding.Ignore, finding.Busy, finding.Ready
	fuzzer.Testbeds.Dir = os.TempDir()
	defer fuzzer.Testbeds.Close()
	again, err := fuzzer.Replay(ctx, finding, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if again == nil {
		return tellGone(cmd, finding.What())
	}
	return tellAgain(cmd, fuzz.Tool, again, finding.Same(again), file)
}

// tellGone reports that a replay has found no problem. The parameter "subject" names the fault or
// edit that the operator has handled correctly.
func tellGone(cmd *cobra.Command, subject string) error {
	fmt.Fprintf(cmd.OutOrStdout(), "It is not found any more: the operator survives this %s.\n", subject)
	return nil
}

// tellAgain reports the problem that a replay has found. The parameter "file" is the file of the
// replayed finding, and `same` is false if the problem differs from that finding. tellAgain returns
// the exit code as an error.
func tellAgain[F results.Finding](cmd *cobra.Command, tool *results.Tool[F], again F, same bool, file string) error {
	tool.TextOf(cmd.OutOrStdout(), again, filepath.Dir(file))
	if !same {
		fmt.Fprintf(cmd.OutOrStdout(), "This is another problem than that in %s.\n", file)
	}
	return errFound
}
