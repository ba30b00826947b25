// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Kinds lists the adapters for all kinds of workloads that can be restarted.
var Kinds = []*Kind{Deployment, StatefulSet, DaemonSet, Rollout}

// Get returns the kind that a target reference names, or an error if the kind is unknown.
func Get(ref tidekeeperv1.TargetRef) (*Kind, error) {
	return Find(ref.GetAPIVersion(), ref.Kind)
}

// Find returns the kind with the given apiVersion and name, or an error if the kind is unknown.
func Find(apiVersion, kind string) (*Kind, error) {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		if k.Is(apiVersion, kind) {
			return k, nil
		}
		names[i] = k.Kind + " of " + k.APIVersion()
	}
	return nil, fmt.Errorf("%s of %s cannot be restarted: use %s", kind, apiVersion, strings.Join(names, ", "))
}

// Named returns the kind for TYPE in kubectl's TYPE/NAME notation, such as deployment,
// deployments.apps or deploy. It returns nil for any other type.
func Named(resource string) *Kind {
	resource, group, qualified := strings.Cut(strings.ToLower(resource), ".")
	for _, k := range Kinds {
		if slices.Contains([]string{strings.ToLower(k.Kind), k.Resource, k.ShortName}, resource) && (!qualified || group == k.Group) {
			return k
		}
	}
	return nil
}

// Of returns the kind of an object, or an error if the kind is unknown.
func Of(o Object) (*Kind, error) {
	for _, k := range Kinds {
		if k.matches(o) {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%T cannot be restarted", o)
}

// matches reports whether an object is of kind k. It also recognizes typed objects whose TypeMeta
// is empty.
func (k *Kind) matches(o Object) bool {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.GroupVersionKind() == k.GroupVersionKind
	}
	return reflect.TypeOf(o) == reflect.TypeOf(k.New())
}

// Required returns the kinds that every cluster serves.
func Required() []*Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k *Kind) bool { return k.Optional })
}

// Optional returns the kinds that some clusters do not serve.
func Optional() []*Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k *Kind) bool { return !k.Optional })
}
