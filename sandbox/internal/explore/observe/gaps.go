// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// gap is a range of etcd revisions. It does not include the revision `after`.
type gap struct{ after, until int64 }

// gaps holds the ranges of revisions in which a recorder may have missed versions.
type gaps struct {
	mu  sync.Mutex
	all []gap
}

// add adds a range that ends with the resourceVersion of a list.
func (g *gaps) add(after int64, until string) {
	end, err := strconv.ParseInt(until, 10, 64)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, gap{after, end})
}

// contain reports whether a revision is in any of the ranges.
func (g *gaps) contain(revision int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.all, func(one gap) bool { return one.after < revision && revision <= one.until })
}

// inFlight is the maximum time for which an event is under way to the recorder. Events that were
// under way when a watch failed are lost.
const inFlight = time.Second

// revisionBefore returns the highest revision of the versions that arrived before the given time.
func revisionBefore(versions []Version, end time.Time) (latest int64) {
	for i := range versions {
		if versions[i].Time.Before(end) {
			latest = max(latest, versions[i].Revision)
		}
	}
	return latest
}

// listAgain lists a resource after its watch has failed, and returns the resourceVersion for the
// next watch. Intermediate versions are not recorded.
func (r *Recorder) listAgain(ctx context.Context, name string, resource schema.GroupVersionResource) (string, error) {
	var list *unstructured.UnstructuredList
	err := r.eventually(ctx, func() (err error) {
		list, err = r.Client.Resource(resource).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	gone := map[types.UID]*unstructured.Unstructured{}
	for _, v := range r.Objects() {
		if v.Resource == name {
			gone[v.Object.GetUID()] = v.Object
		}
	}
	for i := range list.Items {
		object := &list.Items[i]
		before, was := gone[object.GetUID()]
		delete(gone, object.GetUID())
		switch {
		case !was:
			r.saw(name, watch.Added, object, false)
		case before.GetResourceVersion() != object.GetResourceVersion():
			r.saw(name, watch.Modified, object, false)
		}
	}
	for _, object := range gone {
		r.saw(name, watch.Deleted, object, false)
	}
	return list.GetResourceVersion(), nil
}
