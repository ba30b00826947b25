// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// preflightTimeout bounds each request of the preflight: an address that
// swallows packets should be told of before anyone loses patience.
const preflightTimeout = 10 * time.Second

// Preflight asks the cluster for what the chosen controllers cannot do
// without: an API server that answers, that knows the kinds they watch, that
// lets these credentials list and watch them, and have the lease if a leader is
// elected. The informers and the election would run into each of these too, but
// they would go on trying, and log, and the manager would hang without a word of
// what to do.
func Preflight(ctx context.Context, cfg *rest.Config, opts Options) error {
	chosen, err := chooseControllers(opts.Controllers, allControllers)
	if err != nil {
		return err
	}
	namespace, err := leaseNamespace(opts)
	if err != nil {
		return err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = preflightTimeout

	server, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	if _, err := server.ServerVersion(); err != nil {
		return explainUnreachable(cfg.Host, err)
	}
	resources, err := resourcesOf(server, cfg.Host, chosen, opts.Namespaces)
	if err != nil {
		return err
	}

	authorization, err := authorizationclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	reviews := authorization.SelfSubjectAccessReviews()
	if err := checkMayWatch(ctx, reviews, cfg.Host, resources); err != nil || !opts.LeaderElect {
		return err
	}
	if err := checkMayLead(ctx, reviews, cfg.Host, namespace); err != nil {
		return err
	}
	coordination, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("the API server at %s: %w", cfg.Host, err)
	}
	return checkLeaseNamespace(ctx, coordination.Leases(namespace), cfg.Host, namespace)
}

// watched is a resource that the controllers watch, and in which namespaces:
// none means all, or that it is in none.
type watched struct {
	schema.GroupVersionResource
	namespaces []string
}

func explainUnreachable(host string, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not accept these credentials: get a new kubeconfig", host)
	case errors.As(err, &status):
		return fmt.Errorf("the API server at %s answers %w", host, err)
	}
	// What is left without the request, which says nothing that the host does
	// not say.
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	return fmt.Errorf("cannot reach the API server at %s: %w: is it running, and is the kubeconfig up to date?", host, err)
}

// resourcesOf returns the resources that the controllers watch, or an error
// that names the kinds that the cluster does not know.
func resourcesOf(server discovery.ServerResourcesInterface, host string, chosen []controller, namespaces []string) ([]watched, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	var resources []watched
	var missing, missingOurs []string
	known := map[schema.GroupVersion]map[string]string{} // resources by kind
	for _, object := range kindsOf(chosen) {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, err
		}
		gv := gvk.GroupVersion()
		if known[gv] == nil {
			list, err := server.ServerResourcesForGroupVersion(gv.String())
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("asking the API server at %s about %s: %w", host, gv, err)
			}
			known[gv] = map[string]string{}
			if list != nil {
				for _, r := range list.APIResources {
					if !strings.Contains(r.Name, "/") {
						known[gv][r.Kind] = r.Name
					}
				}
			}
		}
		resource, ok := known[gv][gvk.Kind]
		switch {
		case ok:
			w := watched{GroupVersionResource: gv.WithResource(resource)}
			if isLimited(object, chosen) {
				w.namespaces = namespaces
			}
			resources = append(resources, w)
		case gv.Group == tidekeeperv1.GroupName:
			missingOurs = append(missingOurs, gvk.Kind)
		default:
			missing = append(missing, gvk.Kind+"."+gv.String())
		}
	}
	switch {
	case len(missingOurs) > 0:
		return nil, fmt.Errorf("the cluster at %s does not know the kind %s: install it first: kubectl apply -k config/crd",
			host, strings.Join(missingOurs, ", "))
	case len(missing) > 0:
		return nil, fmt.Errorf("the cluster at %s does not serve %s: is it older than this Tidekeeper supports?",
			host, strings.Join(missing, ", "))
	}
	return resources, nil
}

// checkMayWatch returns an error that names the resources that these
// credentials may not list and watch.
func checkMayWatch(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface,
	host string, resources []watched,
) error {
	var denied []string
	for _, r := range resources {
		namespaces := r.namespaces
		if len(namespaces) == 0 {
			namespaces = []string{metav1.NamespaceAll}
		}
		for _, namespace := range namespaces {
			may, err := mayWatch(ctx, reviews, r.GroupVersionResource, namespace)
			switch {
			case err != nil:
				return fmt.Errorf("asking the API server at %s for our rights: %w", host, err)
			case !may && namespace != "":
				denied = append(denied, fmt.Sprintf("%s in the namespace %s", r.GroupResource(), namespace))
			case !may:
				denied = append(denied, r.GroupResource().String())
			}
		}
	}
	if len(denied) > 0 {
		return fmt.Errorf("the cluster at %s does not let these credentials list and watch %s: grant them the rights in config/rbac",
			host, strings.Join(denied, ", "))
	}
	return nil
}

// mayWatch tells whether these credentials may list and watch a resource.
func mayWatch(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface,
	r schema.GroupVersionResource, namespace string,
) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		allowed, err := may(ctx, reviews, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Resource,
		})
		if err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}

// checkMayLead returns an error that names what these credentials may not do to
// the lease in a namespace. Without it a manager would be a standby for ever, and
// say that it is ready.
func checkMayLead(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, host, namespace string) error {
	var denied []string
	for _, verb := range []string{"create", "get", "update"} {
		name := leaseName
		if verb == "create" {
			name = "" // A name cannot bind a right to create.
		}
		allowed, err := may(ctx, reviews, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: coordinationv1.GroupName, Version: "v1", Resource: "leases", Name: name,
		})
		switch {
		case err != nil:
			return fmt.Errorf("asking the API server at %s for our rights: %w", host, err)
		case !allowed:
			denied = append(denied, verb)
		}
	}
	if len(denied) > 0 {
		return fmt.Errorf("the cluster at %s does not let these credentials %s the lease %s in the namespace %s, so this manager could never lead: "+
			"grant them the rights in config/rbac, or name another namespace with --%s",
			host, strings.Join(denied, ", "), leaseName, namespace, flagLeaderElectNamespace)
	}
	return nil
}

// checkLeaseNamespace returns an error if the namespace of the lease does not exist.
// It is asked by a dry run, as the manager has no right to read namespaces.
func checkLeaseNamespace(ctx context.Context, leases coordinationclient.LeaseInterface, host, namespace string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}}
	_, err := leases.Create(ctx, lease, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsNotFound(err) {
		return nil // What else may be wrong, the election says and tries again.
	}
	return fmt.Errorf("the cluster at %s has no namespace %s, so this manager could never lead: create it, or name another namespace with --%s",
		host, namespace, flagLeaderElectNamespace)
}

// may tells whether the API server lets these credentials do something.
func may(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface,
	what authorizationv1.ResourceAttributes,
) (bool, error) {
	review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
