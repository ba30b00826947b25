// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// TestWithoutLeftovers checks that pods whose workload the run has never seen are left out, and no other
// objects: neither pods of a workload that was deleted in the run, nor objects of other owners.
func TestWithoutLeftovers(t *testing.T) {
	t.Parallel()
	version := func(kind watch.EventType, name, owner string, uid types.UID) Version {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetName(name)
		o.SetUID(types.UID(name))
		if owner != "" {
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: owner, Name: "owner", UID: uid, Controller: new(true)}})
		}
		return Version{Type: kind, Object: o}
	}
	var left []string
	for _, v := range WithoutLeftovers([]Version{
		version(watch.Added, "set", "", ""), version(watch.Added, "of-set", "StatefulSet", "set"), version(watch.Deleted, "set", "", ""),
		version(watch.Added, "late", "StatefulSet", "set"), version(watch.Added, "of-before", "StatefulSet", "gone"), version(watch.Modified, "of-before", "StatefulSet", "gone"),
		version(watch.Added, "of-node", "Node", "gone"), version(watch.Added, "alone", "", ""),
	}) {
		left = append(left, v.Object.GetName())
	}
	if want := []string{"set", "of-set", "set", "late", "of-node", "alone"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}
