// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// followPools watches all pools from the given resource version on. The returned function stops the
// watch and returns each version of a pool's condition Headroom.
func followPools(t *testing.T, version string) (stop func(pool string) []metav1.Condition) {
	t.Helper()
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), &tidekeeperv1.NodePoolList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	seen, done := map[string][]metav1.Condition{}, make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			p, ok := e.Object.(*tidekeeperv1.NodePool)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			condition := meta.FindStatusCondition(p.Status.Conditions, tidekeeperv1.ConditionHeadroom)
			if condition == nil {
				condition = &metav1.Condition{}
			}
			seen[p.Name] = append(seen[p.Name], *condition)
		}
	}()
	return func(pool string) []metav1.Condition {
		w.Stop()
		<-done
		return seen[pool]
	}
}
