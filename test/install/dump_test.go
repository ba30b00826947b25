// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// dump returns all objects in the API server except events, which expire after an hour. The keys
// consist of resource, namespace and name. Resources without objects are included. Fields that
// change without a user's action are removed; see strip. While kinds are being deleted, it may return
// an error.
func dump(t *testing.T, cluster *framework.Cluster) (map[string]map[string]any, error) {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandler = rest.NoWarnings{} // Deprecated kinds are listed, too, without warnings.
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := server.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]any{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			gvr := gv.WithResource(resource.Name)
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" {
				continue
			}
			all[gvr.String()] = map[string]any{}
			found, err := objects.Resource(gvr).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // This kind is being deleted.
			} else if err != nil {
				return nil, fmt.Errorf("list %s: %w", gvr, err)
			}
			for _, o := range found.Items {
				strip(&o)
				all[fmt.Sprintf("%s %s/%s", gvr, o.GetNamespace(), o.GetName())] = o.Object
			}
		}
	}
	return all, nil
}

// strip removes the fields that change without a user's action.
func strip(o *unstructured.Unstructured) {
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	o.SetGeneration(0)
	unstructured.RemoveNestedField(o.Object, "status")
	if o.GetKind() == "Lease" {
		unstructured.RemoveNestedField(o.Object, "spec")
	}
}

// eventuallyPopulated waits until the control plane has added to each namespace of a new cluster what
// every namespace has: the service account default, and the ConfigMap with the CA certificates. It
// also waits until ClusterRoles that aggregate others have their rules.
func eventuallyPopulated(t *testing.T, cluster *framework.Cluster) {
	t.Helper()
	framework.Eventually(t, "each namespace is populated", func() error {
		namespaces := &corev1.NamespaceList{}
		if err := cluster.List(t.Context(), namespaces); err != nil {
			return err
		}
		for _, n := range namespaces.Items {
			if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: n.Name, Name: "default"}, &corev1.ServiceAccount{}); err != nil {
				return err
			}
			if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: n.Name, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}); err != nil {
				return err
			}
		}
		roles := &rbacv1.ClusterRoleList{}
		if err := cluster.List(t.Context(), roles); err != nil {
			return err
		}
		return aggregated(roles.Items)
	})
}

// aggregated returns an error if a ClusterRole lacks rules of the ClusterRoles that it aggregates.
func aggregated(roles []rbacv1.ClusterRole) error {
	for _, role := range roles {
		if role.AggregationRule == nil {
			continue
		}
		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			selects, err := metav1.LabelSelectorAsSelector(&selector)
			if err != nil {
				return err
			}
			for _, part := range roles {
				if part.Name == role.Name || !selects.Matches(labels.Set(part.Labels)) {
					continue
				}
				for _, rule := range part.Rules {
					if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return cmp.Equal(r, rule) }) {
						return fmt.Errorf("the ClusterRole %s does not have the rules of %s yet", role.Name, part.Name)
					}
				}
			}
		}
	}
	return nil
}

// eventuallyAsBefore waits until the cluster is in the state `before`. Kubernetes' controllers take
// some time to clean up after a deleted object.
func eventuallyAsBefore(t *testing.T, cluster *framework.Cluster, before map[string]map[string]any) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "the cluster is as it was before", func() error {
		after, err := dump(t, cluster)
		if err != nil {
			return err
		}
		var problems []string
		for key := range before {
			if _, ok := after[key]; !ok {
				problems = append(problems, "gone: "+key)
			} else if d := cmp.Diff(before[key], after[key]); d != "" {
				problems = append(problems, "changed: "+key+" (-before +after):\n"+d)
			}
		}
		for key := range after {
			if _, ok := before[key]; !ok {
				problems = append(problems, "left behind: "+key)
			}
		}
		if len(problems) > 0 {
			slices.Sort(problems)
			return fmt.Errorf("%d differences:\n%s", len(problems), strings.Join(problems, "\n"))
		}
		return nil
	})
}
