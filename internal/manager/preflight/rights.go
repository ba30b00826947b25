// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// rights queries the API server for the rights of the manager's credentials.
type rights struct {
	reviews authorizationclient.SelfSubjectAccessReviewInterface
	host    string
}

// allowed reports whether the manager's credentials allow the given request.
func (r *rights) allowed(ctx context.Context, request authorizationv1.ResourceAttributes) (bool, error) {
	review, err := r.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &request},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the API server at %s for our rights: %w", r.host, err)
	}
	return review.Status.Allowed, nil
}

// checkWatch returns an error that names the resources that the manager's credentials may not list
// and watch.
func (r *rights) checkWatch(ctx context.Context, resources []resource) error {
	var denied []string
	for _, resource := range resources {
		namespaces := resource.namespaces
		if len(namespaces) == 0 {
			namespaces = []string{metav1.NamespaceAll}
		}
		for _, namespace := range namespaces {
			allowed, err := r.canWatch(ctx, resource, namespace)
			switch {
			case err != nil:
				return err
			case !allowed && namespace != "":
				denied = append(denied, fmt.Sprintf("%s in the namespace %s", resource.GroupResource(), namespace))
			case !allowed:
				denied = append(denied, resource.GroupResource().String())
			}
		}
	}
	if len(denied) > 0 {
		return fmt.Errorf("the cluster at %s does not let these credentials list and watch %s: grant them the rights in config/rbac",
			r.host, strings.Join(denied, ", "))
	}
	return nil
}

// canWatch reports whether the manager's credentials may list and watch a resource.
func (r *rights) canWatch(ctx context.Context, resource resource, namespace string) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		allowed, err := r.allowed(ctx, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
		})
		if err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}

// checkLease returns an error that names the verbs on the lease that the manager's credentials
// lack. Without them, the manager would remain a standby forever but report that it is ready.
func (r *rights) checkLease(ctx context.Context, lease *Lease) error {
	var denied []string
	for _, verb := range []string{"create", "get", "update"} {
		name := lease.Name
		if verb == "create" {
			name = "" // RBAC cannot restrict the verb create to a name.
		}
		allowed, err := r.allowed(ctx, authorizationv1.ResourceAttributes{
			Namespace: lease.Namespace, Verb: verb, Group: coordinationv1.GroupName, Version: "v1", Resource: "leases", Name: name,
		})
		switch {
		case err != nil:
			return err
		case !allowed:
			denied = append(denied, verb)
		}
	}
	if len(denied) > 0 {
		return fmt.Errorf("the cluster at %s does not let these credentials %s the lease %s in the namespace %s, so this manager could never lead: "+
			"grant them the rights in config/rbac, or name another namespace with --%s",
			r.host, strings.Join(denied, ", "), lease.Name, lease.Namespace, lease.NamespaceFlag)
	}
	return nil
}

// checkLeaseNamespace returns an error if the lease's namespace does not exist. It sends a dry-run
// create request, because the manager has no right to read namespaces. host is the address of the
// API server, for error messages.
func checkLeaseNamespace(ctx context.Context, leases coordinationclient.LeaseInterface, host string, lease *Lease) error {
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.Name}}
	_, err := leases.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsNotFound(err) {
		return nil // Leader election reports any other error, and retries.
	}
	return fmt.Errorf("the cluster at %s has no namespace %s, so this manager could never lead: create it, or name another namespace with --%s",
		host, lease.Namespace, lease.NamespaceFlag)
}
