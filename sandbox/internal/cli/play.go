// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
)

// Side returns the number of explore commands that can run in parallel on this machine, if each
// uses a single sandbox at a time.
func Side() int { return sandboxes(2, 0) }

// Play runs `sandbox explore` or `sandbox fuzz` with the given arguments in this process, and
// returns the exit code. The command takes its sandboxes from "labs", which other commands can
// share.
func Play(ctx context.Context, labs *lab.Labs, args []string, out, progress io.Writer) int {
	cmd := &cobra.Command{Use: "sandbox", SilenceUsage: true, SilenceErrors: true}
	cmd.AddCommand(newExplore(labs), newFuzz(labs))
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(progress)
	return execute(ctx, cmd)
}
