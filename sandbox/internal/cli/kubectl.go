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

func newKubectl(s *target) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--data-dir DIR] [--at REVISION] [ARGUMENTS...]",
		Short: "Run kubectl against a sandbox, as it is or was",
		Long: `Run kubectl against a sandbox, as its administrator. All arguments but a leading
--data-dir and --at are those of kubectl.

With --at, the sandbox is as it was at a revision: the metadata.resourceVersion of an object
or of a list, or what 'snapshot save' names. kubectl can read objects then, and nothing else.
A sandbox forgets revisions that are older than five to ten minutes, unless it was started
with --keep-history.`,
		Example: `  sandbox kubectl get nodes
  sandbox kubectl --data-dir /tmp/other apply -f deployment.yaml
  sandbox kubectl --at 1234 get deployment web -o yaml`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, args := leading(args, "--data-dir", "--at")
			if dir, given := own["--data-dir"]; given {
				s.dataDir = dir
			}
			if revision, given := own["--at"]; given {
				number, err := parseRevision(revision)
				if err != nil {
					return err
				}
				dir, _, err := s.running(cmd.Context())
				if err != nil {
					return err
				}
				return kubectlAt(cmd.Context(), dir, number, args)
			}
			dir, err := s.dir()
			if err != nil {
				return err
			}
			if !dir.Control().Running() {
				return dir.Control().NotRunning()
			}
			// Override the environment variable KUBECONFIG that the user may have set.
			if err := os.Setenv("KUBECONFIG", dir.Kubeconfig()); err != nil {
				return err
			}
			return syscall.Exec("/proc/self/exe", append([]string{component.Kubectl}, args...), os.Environ())
		},
	}
}

// leading removes the named flags of the sandbox command and their values from the beginning of
// kubectl's arguments. It returns the values, keyed by flag, and the remaining arguments.
func leading(args []string, names ...string) (map[string]string, []string) {
	own := map[string]string{}
next:
	for len(args) > 0 {
		for _, name := range names {
			if value, ok := strings.CutPrefix(args[0], name+"="); ok {
				own[name], args = value, args[1:]
				continue next
			}
			if args[0] == name && len(args) > 1 {
				own[name], args = args[1], args[2:]
				continue next
			}
		}
		break
	}
	return own, args
}
