// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Cleanup deletes all node pools, with the credentials that the options name, and
// waits up to the timeout until a manager has cleaned their nodes and they are
// gone. It tells out what it waits for. Without the kind there is nothing to do.
func Cleanup(ctx context.Context, opts Options, timeout time.Duration, out io.Writer) error {
	cfg, err := LoadConfig(opts)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	return cleanup(ctx, c, timeout, out)
}

func cleanup(ctx context.Context, c client.Client, timeout time.Duration, out io.Writer) error {
	told, reached := "", false
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(context.Context) (bool, error) {
		// Not by the context of the poll: a request that its end cuts off would
		// be what is told, and not what is waited for.
		var left []string
		left, last = deletePools(ctx, c)
		if last != nil && !reached {
			return false, last
		}
		// What has worked once is tried again.
		reached = true
		if last == nil && len(left) == 0 {
			fmt.Fprintln(out, "There are no node pools.")
			return true, nil
		}
		if text := strings.Join(left, ", "); last == nil && text != told {
			told = text
			fmt.Fprintf(out, "Waiting until the nodes of these node pools are clean: %s\n", text)
		}
		return false, nil
	})
	switch {
	case !wait.Interrupted(err) || ctx.Err() != nil:
		return err
	case last != nil:
		return fmt.Errorf("after %s: %w", timeout, last)
	}
	return fmt.Errorf("after %s these node pools are still there: %s: only a running manager can clean their nodes; see kubectl describe nodepools",
		timeout, told)
}

// deletePools deletes the node pools that are not being deleted yet, and returns
// the names of all that there are.
func deletePools(ctx context.Context, c client.Client) (left []string, err error) {
	pools := &tidekeeperv1.NodePoolList{}
	if err := c.List(ctx, pools); meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list node pools: %w", err)
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		left = append(left, pool.Name)
		if pool.DeletionTimestamp.IsZero() {
			if err := client.IgnoreNotFound(c.Delete(ctx, pool)); err != nil {
				return left, fmt.Errorf("delete the node pool %s: %w", pool.Name, err)
			}
		}
	}
	return left, nil
}
