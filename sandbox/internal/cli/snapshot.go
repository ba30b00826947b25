// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/snapshot"
)

// answersWithin is the timeout of a command's requests to etcd.
const answersWithin = 30 * time.Second

func newSnapshot(s *target) *cobra.Command {
	return group(&cobra.Command{Use: "snapshot", Short: "Save all objects of a sandbox, and put them back"},
		newSnapshotSave(s), newSnapshotRestore(s))
}

func newSnapshotSave(s *target) *cobra.Command {
	return &cobra.Command{
		Use:   "save FILE",
		Short: "Save all objects of a sandbox",
		Long: `Save all objects of a sandbox to a file, as they are at one moment, for 'restore'.
The sandbox runs on. The file has the Secrets, too, and only its user can read it.`,
		Example: `  sandbox snapshot save installed.snapshot
  sandbox snapshot restore installed.snapshot`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withEtcd(cmd.Context(), func(_ cluster.Dir, etcd *clientv3.Client) error {
				ctx, cancel := context.WithTimeoutCause(cmd.Context(), answersWithin, fmt.Errorf("etcd has not answered in %s: see 'sandbox status'", answersWithin))
				defer cancel()
				taken, err := snapshot.Take(ctx, etcd, cluster.KubernetesVersion())
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err != nil {
					return err
				}
				if err := taken.Save(args[0]); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s has the %d objects of revision %d.\n", args[0], len(taken.Objects), taken.Revision)
				return nil
			})
		},
	}
}

func newSnapshotRestore(s *target) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put all objects of a sandbox back to a snapshot",
		Long: `Put all objects back to what they were when the snapshot was taken, in this sandbox
or in another one, with their UIDs and their status. What is not in the snapshot is removed.

The API server runs on, and clients that watch it see objects that change, come and go. The
controller manager, the scheduler and the simulated kubelets are started again, as they
remember what was there. Programs of yours that remember it should be, too.`,
		Example: `  sandbox snapshot save installed.snapshot
  sandbox snapshot restore installed.snapshot`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			saved, err := snapshot.Load(args[0])
			if err != nil {
				return err
			}
			if err := saved.Fits(cluster.KubernetesVersion()); err != nil {
				return err
			}
			return s.withEtcd(cmd.Context(), func(dir cluster.Dir, etcd *clientv3.Client) error {
				began := time.Now()
				var changed int
				err := dir.Control().Without(cmd.Context(), func() error {
					var err error
					changed, err = saved.Restore(cmd.Context(), etcd)
					return err
				})
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Restored the %d objects of %s in %.1f s: %d had to be written or removed.\n",
					len(saved.Objects), args[0], time.Since(began).Seconds(), changed)
				return nil
			})
		},
	}
}
