// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Version is one version of an object, or its deletion.
type Version struct {
	Time time.Time
	// Type is ADDED, MODIFIED or DELETED; for what was there at first, ADDED with Initial.
	Type    watch.EventType
	Initial bool
	// Prepared: the object was there at first.
	Prepared bool
	Resource string
	Object   *unstructured.Unstructured
	// Old is the version before, nil if there was none.
	Old *unstructured.Unstructured
	// Revision is that of the whole cluster.
	Revision int64
	// Habit: it changes only what changes again and again while all is at rest.
	Habit bool
}

// recorder watches every resource of a cluster, and keeps every version of every object.
type recorder struct {
	client dynamic.Interface

	mu       sync.Mutex
	versions []Version
	current  map[types.UID]*Version
	// habits tell which versions are unrest.
	habits  *habits
	err     error
	watched map[string]schema.GroupVersionResource
	// never are the resources that are not recorded.
	never []string
	// lock is called for each object by which old clients elect a leader, which they write
	// all the time.
	lock func(key string)
	// changed is closed and replaced with each version.
	changed chan struct{}
	// breaks: watches may break off.
	breaks atomic.Bool
}

// record begins to record until the context ends. What exists is recorded when it returns.
func record(ctx context.Context, config *rest.Config, habits *habits, lock func(key string)) (*recorder, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // Some resources are old, and watched like all.
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &recorder{client: client, habits: habits, lock: lock, current: map[types.UID]*Version{}, changed: make(chan struct{})}
	if r.watched, r.never, err = recorded(config); err != nil {
		return nil, err
	}
	var listing sync.WaitGroup
	errs := make(chan error, len(r.watched))
	for name, resource := range r.watched {
		listing.Go(func() { errs <- r.begin(ctx, name, resource) })
	}
	listing.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return r, errors.Join(all...)
}

// begin lists a resource, and follows it from there.
func (r *recorder) begin(ctx context.Context, name string, resource schema.GroupVersionResource) error {
	list, err := r.client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", name, err)
	}
	for i := range list.Items {
		r.saw(name, watch.Added, &list.Items[i], true)
	}
	version := list.GetResourceVersion()
	go func() {
		for ctx.Err() == nil {
			next, err := r.follow(ctx, name, resource, version)
			if err != nil && r.breaks.Load() {
				next, err = r.listAgain(ctx, name, resource)
			}
			if err != nil && ctx.Err() == nil {
				r.fail(fmt.Errorf("watch %s: %w", name, err))
				return
			}
			version = next
		}
	}()
	return nil
}

// kinds are the resources that are recorded.
func (r *recorder) kinds() []string { return slices.Sorted(maps.Keys(r.watched)) }

// expectBreaks: from now on the API server may be away for a while.
func (r *recorder) expectBreaks() { r.breaks.Store(true) }

// comesBack is how long the API server may be away.
const comesBack = time.Minute

// served waits until the API server and etcd answer.
func (r *recorder) served(ctx context.Context) error {
	return r.eventually(ctx, func() error {
		_, err := r.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// eventually does something until it succeeds, for as long as the API server may be away.
func (r *recorder) eventually(ctx context.Context, do func() error) error {
	for end := time.Now().Add(comesBack); ; {
		err := do()
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		time.Sleep(look)
	}
}

// listAgain lists a resource after a watch has broken off, and returns where to go on. Versions
// in between are not seen.
func (r *recorder) listAgain(ctx context.Context, name string, resource schema.GroupVersionResource) (string, error) {
	var list *unstructured.UnstructuredList
	err := r.eventually(ctx, func() (err error) {
		list, err = r.client.Resource(resource).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	gone := map[types.UID]*unstructured.Unstructured{}
	for _, v := range r.objects() {
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

// follow watches until the API server ends the watch, and returns where to go on.
func (r *recorder) follow(ctx context.Context, name string, resource schema.GroupVersionResource, version string) (string, error) {
	events, err := r.client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return version, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, is := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !is {
			return version, fmt.Errorf("it ended with %v", event.Object)
		}
		version = object.GetResourceVersion()
		if event.Type != watch.Bookmark {
			r.saw(name, event.Type, object, false)
		}
	}
	return version, nil
}

func (r *recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *recorder) saw(resource string, kind watch.EventType, object *unstructured.Unstructured, initial bool) {
	revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	v := Version{Time: time.Now(), Type: kind, Initial: initial, Prepared: initial, Resource: resource, Object: object, Revision: revision}
	if before := r.current[object.GetUID()]; before != nil {
		v.Old, v.Prepared = before.Object, before.Prepared
	}
	r.versions = append(r.versions, v)
	if kind == watch.Deleted {
		delete(r.current, object.GetUID())
	} else {
		r.current[object.GetUID()] = &v
	}
	_, isLock := object.GetAnnotations()[leaderAnnotation]
	switch {
	case isLock:
		r.lock(v.key())
	case !v.heartbeat() && r.habits != nil:
		v.Habit = !r.habits.changed(&v)
		r.versions[len(r.versions)-1].Habit = v.Habit
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// heartbeat reports whether nothing but the report of a node has changed.
func (v *Version) heartbeat() bool {
	if v.Resource != "nodes" || v.Type != watch.Modified || v.Old == nil {
		return false
	}
	report := func(path string) bool {
		return path == "status" || path == "metadata.resourceVersion" || path == "metadata.managedFields"
	}
	return maps.Equal(state.Flatten(v.Old.Object, report), state.Flatten(v.Object.Object, report))
}

// key names the object of a version.
func (v *Version) key() string {
	return nameKey(v.Resource, v.Object.GetNamespace(), v.Object.GetName())
}

// all returns all versions so far, in the order of their revisions, and why some may be
// missing.
func (r *recorder) all() ([]Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := slices.Clone(r.versions)
	slices.SortStableFunc(versions, func(a, b Version) int { return int(a.Revision - b.Revision) })
	return versions, r.err
}

// forget forgets all versions but those of the objects that there are.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions = make([]Version, 0, len(r.current))
	for _, v := range r.current {
		v.Type, v.Initial, v.Old = watch.Added, true, nil
		r.versions = append(r.versions, *v)
	}
}

// objects returns the objects that there are.
func (r *recorder) objects() []Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects := make([]Version, 0, len(r.current))
	for _, v := range r.current {
		objects = append(objects, *v)
	}
	slices.SortFunc(objects, func(a, b Version) int { return strings.Compare(a.key(), b.key()) })
	return objects
}

// unfinished reports whether there is a pod that is about to start or to end, or a claim that is
// not bound.
func (r *recorder) unfinished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.current {
		phase, _, _ := unstructured.NestedString(v.Object.Object, "status", "phase")
		waits := v.Object.GetDeletionTimestamp() != nil || phase == "Pending" || phase == ""
		if (v.Resource == "pods" || v.Resource == "persistentvolumeclaims") && waits {
			return true
		}
	}
	return false
}

// revision returns the latest revision that was seen.
func (r *recorder) revision() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var latest int64
	for i := range r.versions {
		latest = max(latest, r.versions[i].Revision)
	}
	return latest
}

// find returns an object of that resource, which may be written without its group.
func (r *recorder) find(t Target) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.current {
		if v.Object.GetName() == t.Name && v.Object.GetNamespace() == t.Namespace && resourceIs(v.Resource, t.Resource) {
			return v.Object
		}
	}
	return nil
}

// resourceIs reports whether a resource is the one that is named like deployments or
// deployments.apps.
func resourceIs(resource, named string) bool {
	short, _, _ := strings.Cut(resource, ".")
	return resource == named || short == named
}

// next returns a channel that is closed when there is another version.
func (r *recorder) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// patch applies a JSON merge patch, and again if it lost to another write.
func (r *recorder) patch(ctx context.Context, t Target, subresource string, patch []byte) error {
	resource, err := r.resource(t.Resource)
	if err != nil {
		return err
	}
	var subresources []string
	if subresource != "" {
		subresources = []string{subresource}
	}
	for {
		_, err := r.client.Resource(resource).Namespace(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// resource finds a resource by what it is called.
func (r *recorder) resource(named string) (schema.GroupVersionResource, error) {
	for name, resource := range r.watched {
		if resourceIs(name, named) {
			return resource, nil
		}
	}
	if slices.Contains(unrecorded, named) {
		return schema.GroupVersionResource{}, fmt.Errorf("%s are not recorded: they change all the time, or follow from other objects", named)
	}
	return schema.GroupVersionResource{}, fmt.Errorf("the API server has no resource %q: it is written like deployments.apps, and its CRD must be among what is installed", named)
}
