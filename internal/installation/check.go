// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/internal/kube/lease"
	"tidekeeper.dev/tidekeeper/internal/manager"
)

// Check checks, with the credentials in opts, that a manager can work in the cluster. It then waits
// up to the timeout for a leader, which it recognizes by a recently renewed lease in
// opts.LeaderElectNamespace. It writes its findings to out. Its errors name the problem and the
// solution.
func Check(ctx context.Context, opts *manager.Options, timeout time.Duration, out io.Writer) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	if opts.LeaderElectNamespace == "" {
		return fmt.Errorf("--%s is empty: set it to the manager's namespace", manager.FlagLeaderElectNamespace)
	}
	cfg, err := opts.RESTConfig()
	if err != nil {
		return err
	}
	if err := manager.Preflight(ctx, cfg, opts); err != nil {
		return err
	}
	fmt.Fprintf(out, "The cluster at %s has the kinds, and lets these credentials list and watch them.\n", cfg.Host)

	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(context.Context) (bool, error) {
		// The request uses the parent context: if the poll's timeout cancelled the request, its
		// error would replace the more useful error that there is no leader.
		held, err := clients.CoordinationV1().Leases(opts.LeaderElectNamespace).Get(ctx, lease.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			last = errors.New("there is no lease yet")
		case err != nil:
			last = err
		default:
			var leader string
			if leader, last = lease.Leader(held, time.Now()); last == nil {
				fmt.Fprintf(out, "The manager %s leads.\n", leader)
			}
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %s no manager leads: %w: see kubectl -n %s get pods, and their logs",
			timeout, last, opts.LeaderElectNamespace)
	}
	return nil
}
