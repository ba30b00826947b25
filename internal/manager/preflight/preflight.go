// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks, before a manager starts, that the cluster meets the manager's
// requirements. Informers and leader election would also detect each problem, but they retry and
// log: the manager would hang without an explanation.
//
//	preflight.go  the checks, in their order
//	resources.go  whether the API server serves the watched kinds
//	rights.go     whether the credentials have the rights to watch the kinds and to use the lease
package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestTimeout is the timeout of each request. It lets the checks fail within seconds if the
// kubeconfig has an address at which packets are dropped.
const requestTimeout = 10 * time.Second

// Requirements lists a manager's requirements on the cluster.
type Requirements struct {
	// Scheme maps the Go types in Kinds to their group, version and kind.
	Scheme *runtime.Scheme
	// Kinds lists the kinds that the manager lists and watches.
	Kinds []Kind
	// Lease identifies the leader election lease. It is nil if leader election is off.
	Lease *Lease
}

// Kind is a kind that the manager watches. If it lists no namespaces, it is watched in all
// namespaces.
type Kind struct {
	Object     client.Object
	Namespaces []string
	// Optional is true if the manager can start although the cluster does not serve the kind.
	Optional bool
}

// Lease identifies the lease for leader election.
type Lease struct {
	Namespace, Name string
	// NamespaceFlag is the name of the flag that sets the namespace, for error messages.
	NamespaceFlag string
}

// Check returns nil if the cluster meets the requirements. Its error names the unmet requirement
// and the solution.
func Check(ctx context.Context, cfg *rest.Config, required Requirements) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = requestTimeout

	server, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	if _, err := server.ServerVersion(); err != nil {
		return explainUnreachable(cfg.Host, err)
	}
	resources, err := awaitResources(ctx, server, cfg.Host, required)
	if err != nil {
		return err
	}

	authorization, err := authorizationclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	rights := &rights{reviews: authorization.SelfSubjectAccessReviews(), host: cfg.Host}
	if err := rights.checkWatch(ctx, resources); err != nil || required.Lease == nil {
		return err
	}
	if err := rights.checkLease(ctx, required.Lease); err != nil {
		return err
	}
	coordination, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	return checkLeaseNamespace(ctx, coordination.Leases(required.Lease.Namespace), cfg.Host, required.Lease)
}

func explainUnreachable(host string, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not accept these credentials: get a new kubeconfig", host)
	case errors.As(err, &status):
		return fmt.Errorf("the API server at %s answers %w", host, err)
	}
	// Report only the cause: a url.Error repeats the request's URL, although the message already
	// contains the host.
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	return fmt.Errorf("cannot reach the API server at %s: %w: is it running, and is the kubeconfig up to date?", host, err)
}
