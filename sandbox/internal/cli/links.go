// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

func newLinks() *cobra.Command {
	return &cobra.Command{
		Use:   "links DIR",
		Short: "Make links for envtest",
		Long: `Make links named etcd, kube-apiserver and kubectl in a directory. They point to
this binary, which is these programs when it is started under their names, and
are what envtest of controller-runtime looks for in $KUBEBUILDER_ASSETS.`,
		Example: `  sandbox links /tmp/assets
  KUBEBUILDER_ASSETS=/tmp/assets go test ./...`,
		Args: arguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the directory of the links: %w", err)
			}
			names := []string{component.Etcd, component.APIServer, component.Kubectl}
			for _, name := range names {
				// Only links are replaced: a file of that name is a program of the user's.
				info, err := os.Lstat(filepath.Join(args[0], name))
				if err == nil && info.Mode()&fs.ModeSymlink == 0 {
					return fmt.Errorf("%s exists and is not a link: give another directory", filepath.Join(args[0], name))
				} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			for _, name := range names {
				link := filepath.Join(args[0], name)
				if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				if err := os.Symlink(self, link); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "export KUBEBUILDER_ASSETS=%s\n", dir)
			return nil
		},
	}
}
