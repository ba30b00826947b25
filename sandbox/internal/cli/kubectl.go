// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

func newKubectl(r *root) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--data-dir DIR] [ARGUMENTS...]",
		Short: "Run kubectl against a sandbox",
		Long: `Run kubectl against a sandbox, as its administrator. All arguments but a leading
--data-dir are those of kubectl.`,
		Example: `  sandbox kubectl get nodes
  sandbox kubectl --data-dir /tmp/other apply -f deployment.yaml`,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			args = r.takeDataDir(args)
			dir, err := r.dir()
			if err != nil {
				return err
			}
			if !dir.Running() {
				return dir.NotRunning()
			}
			// In place of the one that the user may have there already.
			if err := os.Setenv("KUBECONFIG", dir.Kubeconfig()); err != nil {
				return err
			}
			return syscall.Exec("/proc/self/exe", append([]string{component.Kubectl}, args...), os.Environ())
		},
	}
}

// takeDataDir takes a leading --data-dir from arguments that are not ours.
func (r *root) takeDataDir(args []string) []string {
	if len(args) > 1 && args[0] == "--data-dir" {
		r.dataDir = args[1]
		return args[2:]
	}
	if len(args) > 0 {
		if dir, ok := strings.CutPrefix(args[0], "--data-dir="); ok {
			r.dataDir = dir
			return args[1:]
		}
	}
	return args
}
