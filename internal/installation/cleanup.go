// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/manager"
)

// Cleanup deletes all NodePools and NodeMaintenances with the credentials in opts. It then waits,
// up to the timeout, until they no longer exist, which requires a running manager to remove their
// settings from nodes and to uncordon nodes. It writes its progress to out. Kinds that are not
// installed are skipped.
func Cleanup(ctx context.Context, opts *manager.Options, timeout time.Duration, out io.Writer) error {
	cfg, err := opts.RESTConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := tidekeeperv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	return cleanup(ctx, c, timeout, out)
}

func cleanup(ctx context.Context, c client.Client, timeout time.Duration, out io.Writer) error {
	reported, reached := "", false
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(context.Context) (bool, error) {
		// The request uses the parent context: if the poll's timeout cancelled the request, its
		// error would replace the list of the remaining objects.
		var left []string
		left, last = deleteAll(ctx, c)
		if last != nil && !reached {
			return false, last
		}
		// Before the first successful request, an error ends the poll. Afterwards, failed requests
		// are retried.
		reached = true
		if last == nil && len(left) == 0 {
			fmt.Fprintln(out, "There are no node pools, and no node maintenances.")
			return true, nil
		}
		if names := strings.Join(left, ", "); last == nil && names != reported {
			reported = names
			fmt.Fprintf(out, "Waiting until the settings of these objects are removed from their nodes: %s\n", names)
		}
		return false, nil
	})
	switch {
	case !wait.Interrupted(err) || ctx.Err() != nil:
		return err
	case last != nil:
		return fmt.Errorf("after %s: %w", timeout, last)
	}
	return fmt.Errorf("after %s these objects are still there: %s: only a running manager can remove their settings from the nodes; see kubectl describe nodepools",
		timeout, reported)
}

// deleteAll deletes all NodePools and NodeMaintenances that are not being deleted yet. It returns
// the names of all objects that still exist.
func deleteAll(ctx context.Context, c client.Client) (left []string, err error) {
	for _, list := range []client.ObjectList{&tidekeeperv1.NodeMaintenanceList{}, &tidekeeperv1.NodePoolList{}} {
		if err := c.List(ctx, list); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list the objects with settings on nodes: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return nil
			}
			name := object.GetName()
			if _, is := item.(*tidekeeperv1.NodeMaintenance); is {
				name = "NodeMaintenance " + name
			}
			left = append(left, name)
			if !object.GetDeletionTimestamp().IsZero() {
				return nil
			}
			if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
				return fmt.Errorf("delete %s: %w", name, err)
			}
			return nil
		})
		if err != nil {
			return left, err
		}
	}
	return left, nil
}
