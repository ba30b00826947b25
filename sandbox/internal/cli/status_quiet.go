// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/snapshot"
)

// quietFlags are those by which status waits until nothing is written any more.
type quietFlags struct{ until, timeout time.Duration }

func (f *quietFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.until, "until-quiet", 0, "wait first, until nothing was written for so long, but Leases and Events")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "for how long to wait for that at most")
}

// await waits, if that is asked for.
func (f *quietFlags) await(cmd *cobra.Command, r *root) error {
	switch {
	case !cmd.Flags().Changed("until-quiet"):
		if cmd.Flags().Changed("timeout") {
			return errors.New("--timeout without --until-quiet: there is nothing to wait for")
		}
		return nil
	case f.until <= 0:
		return fmt.Errorf("--until-quiet %s: it must be more than 0", f.until)
	case f.timeout <= f.until:
		return fmt.Errorf("--timeout %s: it must be more than --until-quiet %s", f.timeout, f.until)
	}
	return r.withEtcd(cmd.Context(), func(_ cluster.Dir, etcd *clientv3.Client) error {
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), f.timeout, fmt.Errorf("after %s", f.timeout))
		defer cancel()
		return snapshot.Quiet(ctx, etcd, f.until)
	})
}
