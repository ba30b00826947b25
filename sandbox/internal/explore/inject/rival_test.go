// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// TestLostAnnotations checks that the operator is responsible for an annotation of another client
// until the object is gone, and that an annotation is forgiven if it is lost in a step of users.
func TestLostAnnotations(t *testing.T) {
	version := func(name string, uid types.UID, annotated bool) observe.Version {
		o := &unstructured.Unstructured{}
		o.SetNamespace("shop")
		o.SetName(name)
		o.SetUID(uid)
		if annotated {
			o.SetAnnotations(map[string]string{observe.TouchedAnnotation: "now"})
		}
		return observe.Version{Resource: "configmaps", Object: o}
	}
	r := &Rival{Recorder: &observe.Recorder{Current: map[types.UID]*observe.Version{}}}
	has := func(v observe.Version) { r.Recorder.Current[v.Object.GetUID()] = &v }
	for _, name := range []string{"kept", "lost", "gone", "remade", "later"} {
		r.annotated = append(r.annotated, version(name, types.UID(name), true))
	}
	has(version("kept", "kept", true))
	has(version("lost", "lost", false))
	has(version("remade", "another", false))
	has(version("later", "later", true))
	const lost, later = "configmaps shop/lost: what another client wrote to it is lost", "configmaps shop/later: what another client wrote to it is lost"
	before := r.Lost()
	if !slices.Equal(before, []string{lost}) {
		t.Errorf("lost are %q, want %q", before, lost)
	}
	has(version("later", "later", false))
	if now := r.Lost(); !slices.Equal(now, []string{lost, later}) {
		t.Errorf("after a step of users, lost are %q", now)
	}
	r.Forgive(before)
	if now := r.Lost(); !slices.Equal(now, []string{lost}) {
		t.Errorf("after users are forgiven, lost are %q, want %q", now, lost)
	}
	has(version("kept", "kept", false))
	if now := r.Lost(); len(now) != 2 {
		t.Errorf("after that, lost are %q", now)
	}
}
