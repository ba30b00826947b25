// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"tidekeeper.dev/tidekeeper/internal/kube/lease"
)

// newLock returns the leader election lock: the lease, with labels that publish the settings of its
// holder. It replaces controller-runtime's lock, which does not reveal its identity. The labels
// contain this identity, because they must name the manager that published them.
func newLock(cfg *rest.Config, opts *Options, settings map[string]string) (*resourcelock.LeaseLock, error) {
	namespace, err := leaseNamespace(opts)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of this host: %w", err)
	}
	cfg = rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	// The timeout of a single request leaves time for a second request before the lease is lost.
	cfg.Timeout = max(time.Second, opts.RenewDeadline/2)
	leases, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up the leader election: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lease.Name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		Labels:     lease.Labels(identity, settings),
	}, nil
}

// leaseNamespace returns the lease's namespace: the namespace in the options or, if that is empty,
// the pod's namespace. It returns "" if leader election is off.
func leaseNamespace(opts *Options) (string, error) {
	if !opts.LeaderElect || opts.LeaderElectNamespace != "" {
		return opts.LeaderElectNamespace, nil
	}
	namespace, err := os.ReadFile(namespaceFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("--%s: outside a cluster it needs --%s too", flagLeaderElect, FlagLeaderElectNamespace)
	case err != nil:
		return "", fmt.Errorf("read the namespace of this pod: %w", err)
	}
	return strings.TrimSpace(string(namespace)), nil
}
