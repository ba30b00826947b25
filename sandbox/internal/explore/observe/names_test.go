// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOwnersWithChangingNames checks that an owner reference is compared without the template hash or
// the generated part of the owner's name if the name differs from run to run, and with it otherwise.
func TestOwnersWithChangingNames(t *testing.T) {
	t.Parallel()
	names := Names{Stable: map[string]bool{"replicasets.apps shop/first-6bc5d9f7c8": true}}
	for owner, want := range map[string]string{
		"first-6bc5d9f7c8": "metadata.ownerReferences[first-6bc5d9f7c8].kind", "web-77fd8bd9c5": "metadata.ownerReferences[web-HASH].kind", "web": "metadata.ownerReferences[web].kind",
		"web-kl7zr": "metadata.ownerReferences[web-*].kind",
	} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetNamespace("shop")
		o.SetName("pod-1")
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner}})
		fields := names.Fields(&Version{Resource: "pods", Object: o})
		if fields[want] != "ReplicaSet" || "metadata.ownerReferences["+fields[strings.TrimSuffix(want, "kind")+"name"]+"].kind" != want {
			t.Errorf("owner %s: %v", owner, fields)
		}
	}
}

// TestKey checks that objects whose names differ from run to run are known by their owner, such as
// those whose names end with a hash of the owner's UID.
func TestKey(t *testing.T) {
	t.Parallel()
	owner := func(name string, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: "Deployment", Name: name, Controller: controller}
	}
	names := Names{Stable: map[string]bool{"jobs.batch shop/daily": true, "deployments.apps shop/web": true}}
	for name, tc := range map[string]struct {
		object string
		owners []metav1.OwnerReference
		want   string
	}{
		"the same name in each run":      {"daily", []metav1.OwnerReference{owner("web", new(true))}, "jobs.batch shop/daily"},
		"a controller":                   {"web-1a2b", []metav1.OwnerReference{owner("other", nil), owner("web", new(true))}, "jobs.batch shop/* of Deployment web"},
		"one owner, no controller":       {"web-1a2b", []metav1.OwnerReference{owner("web", nil)}, "jobs.batch shop/* of Deployment web"},
		"one owner with a changing name": {"web-1a2b", []metav1.OwnerReference{owner("web-3c4d", nil)}, "jobs.batch shop/* of Deployment *"},
		"two owners, no controller":      {"web-1a2b", []metav1.OwnerReference{owner("web", nil), owner("other", nil)}, "jobs.batch shop/web-1a2b"},
		"no owner":                       {"web-1a2b", nil, "jobs.batch shop/web-1a2b"},
	} {
		o := &unstructured.Unstructured{}
		o.SetNamespace("shop")
		o.SetName(tc.object)
		o.SetOwnerReferences(tc.owners)
		if got := names.Key(&Version{Resource: "jobs.batch", Object: o}); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestGeneral checks that a problem is recognized in another run, in which other names are generated.
func TestGeneral(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"pods default/sums-r422c: three pods at most does not hold":       "pods default/sums-*: three pods at most does not hold",
		"pods default/pair-8984d6b64-g9klj: a pod is ready does not hold": "pods default/pair-HASH-*: a pod is ready does not hold",
		"pods default/crew-0: a well-known rule does not hold":            "pods default/crew-0: a well-known rule does not hold",
	} {
		if got := General(line); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
