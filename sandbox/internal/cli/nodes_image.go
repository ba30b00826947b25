// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
)

func newNodesLoadImage(s *target) *cobra.Command {
	return &cobra.Command{
		Use:   "load-image NAME PROGRAM|ARCHIVE.tar",
		Short: "Load an image archive, or a program as an image, into the real nodes",
		Long: `Make an image of one program, which must need nothing but itself, and give it to
the real nodes. The program is the entry point of the image, and runs as user
` + realnode.ImageUser + ` unless its pod says otherwise. An archive is an OCI layout with one image,
which pods can also name by its digest. An image of that name that is there is replaced.
Nodes have no other images, and cannot pull any.`,
		Example: `  CGO_ENABLED=0 go build -o /tmp/operator ./cmd/operator
  sandbox nodes load-image operator:dev /tmp/operator
  sandbox kubectl create deployment operator --image=operator:dev
  sandbox nodes load-image operator:v1 operator-v1-image.tar`,
		Args: arguments("NAME", "PROGRAM|ARCHIVE.tar"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, status, err := s.running(cmd.Context())
			if err != nil {
				return err
			}
			if status.RealNodes == 0 {
				return fmt.Errorf("the sandbox in %s has no real nodes: stop it, and start it with 'sandbox up --real-nodes 1'", dir)
			}
			file, err := realnode.StoreImage(dir.Images(), args[0], args[1])
			if err != nil {
				return err
			}
			for _, socket := range status.NodeSockets() {
				if err := realnode.Load(cmd.Context(), socket, file); err != nil {
					return err
				}
			}
			name, err := realnode.FullName(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The real nodes have %s.\n", name)
			return nil
		},
	}
}
