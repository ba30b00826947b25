// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// gap is a range of etcd revisions. It does not include the revision `after`.
type gap struct{ after, until int64 }

// gaps is a list of ranges of revisions in which a recorder may have missed versions.
type gaps []gap

// contain reports whether a revision is in any of the gaps.
func (g gaps) contain(revision int64) bool {
	for _, one := range g {
		if one.after < revision && revision <= one.until {
			return true
		}
	}
	return false
}

// inFlight is the maximum time for which an event is under way to the recorder. Events that were
// under way when a watch failed are lost.
const inFlight = time.Second

// revisionBefore returns the highest revision that arrived before the given time.
func (r *Recorder) revisionBefore(end time.Time) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var latest int64
	for i := range r.Versions {
		if r.Versions[i].Time.Before(end) {
			latest = max(latest, r.Versions[i].Revision)
		}
	}
	return latest
}

// addGap records that versions may be missing after the revision `after` up to `until`, which is the
// resourceVersion of a list.
func (r *Recorder) addGap(after int64, until string) {
	end, err := strconv.ParseInt(until, 10, 64)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, gap{after, end})
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
