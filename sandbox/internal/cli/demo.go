// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// demoProgram is the name of the demo program, which some release archives contain next to the
// sandbox program.
const demoProgram = "sandbox-demo"

func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [ARGUMENTS...]",
		Short: "Show the operator that is packed with this program",
		Long: `Show the operator that is packed with this program: run ` + demoProgram + ` of the same folder,
which starts a sandbox of its own, with arguments of its own.`,
		// Pass all flags on to the demo program.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			own, err := os.Executable()
			if err != nil {
				return err
			}
			program := filepath.Join(filepath.Dir(own), demoProgram)
			if _, err := os.Stat(program); err != nil {
				return fmt.Errorf("there is no demo here: an archive that has one has the program %s beside this one", demoProgram)
			}
			return syscall.Exec(program, append([]string{program}, args...), os.Environ())
		},
	}
}
