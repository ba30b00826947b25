// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

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

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Version is an observed state of an object, or the object's deletion.
type Version struct {
	Time time.Time
	// Type is ADDED, MODIFIED or DELETED. Objects in the initial list are ADDED and have Initial
	// set.
	Type    watch.EventType
	Initial bool
	// Prepared is set if the object existed before the run.
	Prepared bool
	Resource string
	Object   *unstructured.Unstructured
	// Old is the previous version of the object, or nil if there is none.
	Old *unstructured.Unstructured
	// Revision is the numeric resourceVersion, which is an etcd revision.
	Revision int64
	// Habit is set if the version changes only fields that keep changing in an otherwise quiet
	// cluster.
	Habit bool
	// InGap is set if the recorder may have missed versions of another object before this version,
	// because a watch failed. A rule about several objects may then seem not to hold.
	InGap bool
}

// Recorder watches every resource of a cluster and stores all versions of all objects.
type Recorder struct {
	Client dynamic.Interface

	mu       sync.Mutex
	Versions []Version
	Current  map[types.UID]*Version
	// Habits decides which object versions count as activity, and not as recurring changes of a
	// quiet cluster.
	Habits  *Habits
	err     error
	Watched map[string]schema.GroupVersionResource
	// Never holds the names of the resources that the recorder does not record.
	Never []string
	// lock is called with the key of each object that has LeaderAnnotation. Older clients use such
	// objects for leader election and update them constantly.
	lock func(key string)
	// changed is closed, and replaced by a new channel, when a version arrives. This wakes
	// goroutines that wait for versions.
	changed chan struct{}
	// breaks is set if watches may fail because a fault hits the API server.
	breaks atomic.Bool
	// gaps lists the ranges of revisions in which versions may be missing.
	gaps gaps
}

// Start returns a recorder that watches all objects until ctx is done. When Start returns, all
// existing objects have been recorded.
func Start(ctx context.Context, config *rest.Config, habits *Habits, lock func(key string)) (*Recorder, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // Deprecated resources are watched like all others.
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &Recorder{Client: client, Habits: habits, lock: lock, Current: map[types.UID]*Version{}, changed: make(chan struct{})}
	if r.Watched, r.Never, err = recorded(config); err != nil {
		return nil, err
	}
	var listing sync.WaitGroup
	errs := make(chan error, len(r.Watched))
	for name, resource := range r.Watched {
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

// begin lists a resource, and starts a watch from the list's resourceVersion.
func (r *Recorder) begin(ctx context.Context, name string, resource schema.GroupVersionResource) error {
	list, err := r.Client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", name, err)
	}
	for i := range list.Items {
		r.saw(name, watch.Added, &list.Items[i], true)
	}
	version := list.GetResourceVersion()
	go func() {
		complete := time.Now() // The versions before this time have arrived, apart from those in flight.
		for ctx.Err() == nil {
			next, open, err := r.follow(ctx, name, resource, version)
			if open {
				complete = time.Now()
			}
			if err != nil && r.breaks.Load() {
				if next, err = r.listAgain(ctx, name, resource); err == nil {
					before, _ := r.All()
					r.gaps.add(revisionBefore(before, complete.Add(-inFlight)), next)
					complete = time.Now()
				}
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

// Kinds returns the sorted names of the recorded resources.
func (r *Recorder) Kinds() []string { return slices.Sorted(maps.Keys(r.Watched)) }

// ExpectBreaks permits watches to fail from now on, because the API server may become unavailable
// for a while.
func (r *Recorder) ExpectBreaks() { r.breaks.Store(true) }

// comesBack is the maximum duration of an API server outage that the recorder tolerates.
const comesBack = time.Minute

// Served waits until the API server and etcd respond. It returns an error if they do not respond
// within the time comesBack.
func (r *Recorder) Served(ctx context.Context) error {
	return r.eventually(ctx, func() error {
		_, err := r.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// eventually retries the function `do` until it succeeds or comesBack has passed. It returns the
// last error of `do`.
func (r *Recorder) eventually(ctx context.Context, do func() error) error {
	for end := time.Now().Add(comesBack); ; {
		err := do()
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		time.Sleep(Look)
	}
}

// follow watches a resource until the API server closes the watch, and returns the resourceVersion
// for the next watch. open is false if the API server refused the watch, at once or with the first
// event, so that it may have been without a watch for longer.
func (r *Recorder) follow(ctx context.Context, name string, resource schema.GroupVersionResource, version string) (next string, open bool, err error) {
	events, err := r.Client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return version, false, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, is := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !is {
			return version, open, fmt.Errorf("it ended with %v", event.Object)
		}
		version, open = object.GetResourceVersion(), true
		if event.Type != watch.Bookmark {
			r.saw(name, event.Type, object, false)
		}
	}
	return version, true, nil
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *Recorder) saw(resource string, kind watch.EventType, object *unstructured.Unstructured, initial bool) {
	revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	v := Version{Time: time.Now(), Type: kind, Initial: initial, Prepared: initial, Resource: resource, Object: object, Revision: revision}
	if before := r.Current[object.GetUID()]; before != nil {
		v.Old, v.Prepared = before.Object, before.Prepared
	}
	r.Versions = append(r.Versions, v)
	if kind == watch.Deleted {
		delete(r.Current, object.GetUID())
	} else {
		r.Current[object.GetUID()] = &v
	}
	_, isLock := object.GetAnnotations()[LeaderAnnotation]
	switch {
	case isLock:
		r.lock(v.Key())
	case !v.Heartbeat() && r.Habits != nil:
		v.Habit = !r.Habits.changed(&v)
		r.Versions[len(r.Versions)-1].Habit = v.Habit
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// Heartbeat reports whether a version only updates a node's status.
func (v *Version) Heartbeat() bool {
	if v.Resource != "nodes" || v.Type != watch.Modified || v.Old == nil {
		return false
	}
	report := func(path string) bool {
		return path == "status" || path == "metadata.resourceVersion" || path == "metadata.managedFields"
	}
	return maps.Equal(state.Flatten(v.Old.Object, report), state.Flatten(v.Object.Object, report))
}

// Key returns the object's key, like "pods default/web" (see NameKey).
func (v *Version) Key() string {
	return NameKey(v.Resource, v.Object.GetNamespace(), v.Object.GetName())
}

// All returns all versions recorded so far, sorted by revision. It returns an error if the recorder
// may have missed versions.
func (r *Recorder) All() ([]Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := slices.Clone(r.Versions)
	slices.SortStableFunc(versions, func(a, b Version) int { return int(a.Revision - b.Revision) })
	for i := range versions {
		versions[i].InGap = r.gaps.contain(versions[i].Revision)
	}
	return versions, r.err
}

// Forget discards all versions except for the current versions of existing objects.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Versions = make([]Version, 0, len(r.Current))
	for _, v := range r.Current {
		v.Type, v.Initial, v.Old = watch.Added, true, nil
		r.Versions = append(r.Versions, *v)
	}
}

// Objects returns the current version of each existing object, sorted by key.
func (r *Recorder) Objects() []Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects := make([]Version, 0, len(r.Current))
	for _, v := range r.Current {
		objects = append(objects, *v)
	}
	slices.SortFunc(objects, func(a, b Version) int { return strings.Compare(a.Key(), b.Key()) })
	return objects
}

// Knows reports whether an object with the given key (see [Version.Key]) exists, according to the
// events that have arrived so far.
func (r *Recorder) Knows(key string) bool {
	return slices.ContainsFunc(r.Objects(), func(v Version) bool { return v.Key() == key })
}

// Count returns the number of existing objects.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.Current)
}

// Unfinished reports whether any pod or PersistentVolumeClaim is pending or terminating.
func (r *Recorder) Unfinished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.Current {
		phase, _, _ := unstructured.NestedString(v.Object.Object, "status", "phase")
		waits := v.Object.GetDeletionTimestamp() != nil || phase == "Pending" || phase == ""
		if (v.Resource == "pods" || v.Resource == "persistentvolumeclaims") && waits {
			return true
		}
	}
	return false
}

// Revision returns the highest etcd revision seen so far.
func (r *Recorder) Revision() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var latest int64
	for i := range r.Versions {
		latest = max(latest, r.Versions[i].Revision)
	}
	return latest
}

// Find returns the current version of an object, or nil. The resource may be named without its
// group.
func (r *Recorder) Find(t workload.Target) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.Current {
		if v.Object.GetName() == t.Name && v.Object.GetNamespace() == t.Namespace && ResourceIs(v.Resource, t.Resource) {
			return v.Object
		}
	}
	return nil
}

// ResourceIs reports whether a resource, such as deployments.apps, has the given name, which may
// omit the group.
func ResourceIs(resource, named string) bool {
	short, _, _ := strings.Cut(resource, ".")
	return resource == named || short == named
}

// Next returns a channel that is closed when the recorder receives a new version of any object. To
// miss no change, get the channel before reading the objects.
func (r *Recorder) Next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Patch applies a JSON merge patch to an object or, if `subresource` is not empty, to a subresource
// such as status. It retries after conflicts.
func (r *Recorder) Patch(ctx context.Context, t workload.Target, subresource string, patch []byte) error {
	resource, err := r.Resource(t.Resource)
	if err != nil {
		return err
	}
	var subresources []string
	if subresource != "" {
		subresources = []string{subresource}
	}
	for {
		_, err := r.Client.Resource(resource).Namespace(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// Resource returns the recorded resource with the given name, which may omit the group.
func (r *Recorder) Resource(named string) (schema.GroupVersionResource, error) {
	for name, resource := range r.Watched {
		if ResourceIs(name, named) {
			return resource, nil
		}
	}
	if slices.Contains(unrecorded, named) {
		return schema.GroupVersionResource{}, fmt.Errorf("%s are not recorded: they change all the time, or follow from other objects", named)
	}
	return schema.GroupVersionResource{}, fmt.Errorf("the API server has no resource %q: it is written like deployments.apps, and its CRD must be among what is installed", named)
}

// Look is the interval for polling the state of the cluster or the operator.
const Look = 50 * time.Millisecond
