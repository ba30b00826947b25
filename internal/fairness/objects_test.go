// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestCachedObjects checks that the metric has the number of cached objects of each namespace, of
// all kinds together. Objects without a namespace, and objects of informers that have stopped, must
// not be counted.
func TestCachedObjects(t *testing.T) {
	o := &Objects{}
	create := o.Follow(cache.NewSharedIndexInformer)
	kept := map[string]cache.SharedIndexInformer{}
	for _, kind := range []string{"Pod", "ConfigMap", "Node", "removed"} {
		kept[kind] = create(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, name := range []string{"mallory/a", "mallory/b", "alice/a"} {
			namespace, name, _ := strings.Cut(name, "/")
			if kind == "Node" {
				namespace = ""
			}
			if err := kept[kind].GetIndexer().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kept["removed"].RunWithContext(ctx)
	if err := kept["Pod"].GetIndexer().Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "alice", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	want := `# HELP tidekeeper_namespace_cached_objects Objects of a namespace in the manager's cache, which take its memory, by namespace: for each of the 20 namespaces with the highest values, and the sum of all others under the empty namespace.
# TYPE tidekeeper_namespace_cached_objects gauge
tidekeeper_namespace_cached_objects{namespace=""} 0
tidekeeper_namespace_cached_objects{namespace="alice"} 1
tidekeeper_namespace_cached_objects{namespace="mallory"} 4
`
	if err := testutil.CollectAndCompare(o, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if len(o.informers) != 3 {
		t.Errorf("%d informers are kept, want 3", len(o.informers))
	}
}
