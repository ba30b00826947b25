// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// crdTimeout is the maximum time for which a manager waits for its own kinds. A manager may be
// started together with the CRDs, and the API server serves a kind only some time after kubectl
// apply has reported the CRD as created, which on a busy machine may take many seconds.
const (
	crdTimeout  = 30 * time.Second
	crdInterval = 250 * time.Millisecond
)

// resource is a watched resource. If it lists no namespaces, it is watched in all namespaces.
type resource struct {
	schema.GroupVersionResource
	namespaces []string
}

// awaitResources returns the result of findResources, and waits up to crdTimeout if Tidekeeper's
// own kinds are not served yet. host is the address of the API server, for messages.
func awaitResources(ctx context.Context, server discovery.ServerResourcesInterface, host string, required Requirements) ([]resource, error) {
	var resources []resource
	var last error
	logged := false
	err := wait.PollUntilContextTimeout(ctx, crdInterval, crdTimeout, true, func(context.Context) (bool, error) {
		resources, last = findResources(server, host, required)
		unknown := (*unknownKindsError)(nil)
		switch {
		case last == nil:
			return true, nil
		case !errors.As(last, &unknown):
			return false, last
		case !logged:
			logged = true
			slog.Info("Waiting for the cluster to serve the kinds of config/crd", "server", host, "kinds", unknown.kinds, "upTo", crdTimeout)
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil {
		return nil, last
	}
	return resources, err
}

// unknownKindsError is the error for Tidekeeper kinds that the cluster does not serve.
type unknownKindsError struct {
	host  string
	kinds []string
}

func (e *unknownKindsError) Error() string {
	return fmt.Sprintf("the cluster at %s does not know the kind %s: install it first: kubectl apply -k config/crd", e.host, strings.Join(e.kinds, ", "))
}

// findResources returns the resources of the required kinds. Its error names the kinds that the
// cluster does not serve. host is the address of the API server, for error messages.
func findResources(server discovery.ServerResourcesInterface, host string, required Requirements) ([]resource, error) {
	var resources []resource
	var missing, missingOurs []string
	served := map[schema.GroupVersion]map[string]string{} // resources by kind
	for _, kind := range required.Kinds {
		gvk, err := apiutil.GVKForObject(kind.Object, required.Scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", kind.Object, err)
		}
		gv := gvk.GroupVersion()
		if served[gv] == nil {
			if served[gv], err = resourcesByKind(server, gv); err != nil {
				return nil, fmt.Errorf("ask the API server at %s about %s: %w", host, gv, err)
			}
		}
		name, ok := served[gv][gvk.Kind]
		switch {
		case ok:
			resources = append(resources, resource{gv.WithResource(name), kind.Namespaces})
		case kind.Optional:
		case gv.Group == tidekeeperv1.GroupName:
			missingOurs = append(missingOurs, gvk.Kind)
		default:
			missing = append(missing, gvk.Kind+"."+gv.String())
		}
	}
	switch {
	case len(missingOurs) > 0:
		return nil, &unknownKindsError{host, missingOurs}
	case len(missing) > 0:
		return nil, fmt.Errorf("the cluster at %s does not serve %s: is it older than this Tidekeeper supports?",
			host, strings.Join(missing, ", "))
	}
	return resources, nil
}

// resourcesByKind returns the names of the resources in a group and version, keyed by kind.
func resourcesByKind(server discovery.ServerResourcesInterface, gv schema.GroupVersion) (map[string]string, error) {
	byKind := map[string]string{}
	list, err := server.ServerResourcesForGroupVersion(gv.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if list == nil {
		return byKind, nil
	}
	for _, r := range list.APIResources {
		if subresource := strings.Contains(r.Name, "/"); !subresource {
			byKind[r.Kind] = r.Name
		}
	}
	return byKind, nil
}
