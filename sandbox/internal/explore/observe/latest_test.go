// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// TestLatestState checks that the state is computed once, and again after each change.
func TestLatestState(t *testing.T) {
	r := &Recorder{Current: map[types.UID]*Version{}, changed: make(chan struct{})}
	var latest LatestState
	computed := 0
	look := func() int {
		return len(latest.Of(r, func(objects []Version) State {
			computed++
			return Names{}.State(objects, nil)
		}))
	}
	for i := range 3 {
		for range 2 {
			if got := look(); got != i || computed != i+1 {
				t.Errorf("with %d objects, the state has %d, and was computed %d times", i, got, computed)
			}
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetName(string(rune('a' + i)))
		o.SetUID(types.UID(o.GetName()))
		o.SetResourceVersion("1")
		r.saw("configmaps", watch.Added, o, false)
	}
}
