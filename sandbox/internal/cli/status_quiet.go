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

// quietFlags holds the flags that make the status command wait until no object other than Leases
// and Events has been written for some time.
type quietFlags struct{ until, timeout time.Duration }

func (f *quietFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.until, "until-quiet", 0, "wait first, until nothing but Leases and Events was written for this time")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "maximum time to wait for quiet")
}

// check rejects contradictory flags, and reports whether the command must wait. The parameters
// report whether the user has set the flags --until-quiet and --timeout.
func (f *quietFlags) check(until, timeout bool) (wait bool, _ error) {
	switch {
	case !until && timeout:
		return false, errors.New("--timeout without --until-quiet: there is nothing to wait for")
	case !until:
		return false, nil
	case f.until <= 0:
		return false, fmt.Errorf("--until-quiet %s: it must be more than 0", f.until)
	case f.timeout <= f.until:
		return false, fmt.Errorf("--timeout %s: it must be more than --until-quiet %s", f.timeout, f.until)
	}
	return true, nil
}

// await waits until nothing has been written for the duration --until-quiet. It does not wait if
// that flag is not set.
func (f *quietFlags) await(cmd *cobra.Command, s *target) error {
	if wait, err := f.check(cmd.Flags().Changed("until-quiet"), cmd.Flags().Changed("timeout")); !wait {
		return err
	}
	return s.withEtcd(cmd.Context(), func(_ cluster.Dir, etcd *clientv3.Client) error {
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), f.timeout, fmt.Errorf("after %s", f.timeout))
		defer cancel()
		return snapshot.Quiet(ctx, etcd, f.until)
	})
}
