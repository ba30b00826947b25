// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// rotationTaint is the key of the taint that empties a node.
const rotationTaint = "example.com/rotation"

// film records the history of a world's pods and nodes, by watches without a gap that begin with a
// list. A watch has each change, so it is known without a doubt whether a workload was down; how
// long it was follows from the times at which the changes were received.
type film struct {
	world      *world
	began      time.Time
	mu         sync.Mutex
	events     []Event
	nodes      map[string]*corev1.Node // the last state of each node
	err        error
	cancel     context.CancelFunc
	recordings sync.WaitGroup
	// until is the revision at which the recording of a resource ends, 0 while it is unknown.
	until map[string]uint64
}

// record starts to record. The recording is stopped when the test ends, at the latest.
func (w *world) record(t *testing.T) *film {
	t.Helper()
	config := rest.CopyConfig(w.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	f := &film{world: w, nodes: map[string]*corev1.Node{}, until: map[string]uint64{}, cancel: cancel}
	t.Cleanup(f.recordings.Wait)
	t.Cleanup(cancel)
	pods, err := clients.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	must(t, err)
	nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(t, err)
	f.began = time.Now()
	for i := range pods.Items {
		must(t, f.add(f.began, watch.Event{Type: watch.Added, Object: &pods.Items[i]}))
	}
	for i := range nodes.Items {
		must(t, f.add(f.began, watch.Event{Type: watch.Added, Object: &nodes.Items[i]}))
	}
	f.follow(ctx, t, "pods", pods.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return clients.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, o)
	})
	f.follow(ctx, t, "nodes", nodes.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return clients.CoreV1().Nodes().Watch(ctx, o)
	})
	return f
}

// follow records the changes of a resource after a resource version, over the ends of watches.
func (f *film) follow(ctx context.Context, t *testing.T, resource, version string, open func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	t.Helper()
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: open})
	must(t, err)
	f.recordings.Go(func() {
		defer changes.Stop()
		for e := range changes.ResultChan() {
			at := time.Now()
			if err := f.add(at, e); err != nil {
				f.fail(fmt.Errorf("watch %s: %w", resource, err))
				return
			}
			if f.ends(resource, e.Object) {
				return
			}
		}
		f.fail(fmt.Errorf("watch %s: the watch has ended: %w", resource, context.Cause(ctx)))
	})
}

func (f *film) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// add adds a change to the history.
func (f *film) add(at time.Time, e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	if e.Type == watch.Bookmark {
		return nil
	}
	revision, err := revisionOf(e.Object)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := e.Object.(type) {
	case *corev1.Pod:
		if o.Labels["app"] != "" {
			f.events = append(f.events, Event{At: at, Revision: revision, Pod: &Pod{
				UID: o.UID, Workload: o.Labels["app"], Node: o.Spec.NodeName, Ready: isReady(o),
				Deleted: o.DeletionTimestamp != nil || e.Type == watch.Deleted, Gone: e.Type == watch.Deleted,
			}})
		}
	case *corev1.Node:
		f.nodes[o.Name] = o
		f.events = append(f.events, Event{At: at, Revision: revision, Node: &Node{Name: o.Name, Closed: isClosed(o), NotReady: !nodes.IsReady(o)}})
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func isClosed(node *corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == rotationTaint })
}

func revisionOf(o runtime.Object) (uint64, error) {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
}

// ends reports whether the recording of a resource ends with an object.
func (f *film) ends(resource string, o runtime.Object) bool {
	revision, err := revisionOf(o)
	f.mu.Lock()
	defer f.mu.Unlock()
	return err == nil && f.until[resource] > 0 && revision >= f.until[resource]
}

// stop ends the recording. It writes a pod and a node, and waits for these changes, so that the
// history has all earlier changes.
func (f *film) stop(t *testing.T) (events []Event, ended time.Time) {
	t.Helper()
	w := f.world
	ended = time.Now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "end-of-history", Namespace: metav1.NamespaceDefault}, Spec: *framework.App.DeepCopy()}
	pod.Spec.SchedulerName = "none"
	node := framework.Node(w.nodeNames[0])
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/end-of-history":%q}}}`, ended))
	// Other handlers of events wait meanwhile for the revisions.
	f.mu.Lock()
	errPod, errNode := w.Create(t.Context(), pod), w.Patch(t.Context(), node, patch)
	if errPod == nil && errNode == nil {
		f.until["pods"], errPod = revisionOf(pod)
		f.until["nodes"], errNode = revisionOf(node)
	}
	f.mu.Unlock()
	must(t, errPod)
	must(t, errNode)
	f.recordings.Wait()
	f.cancel()
	must(t, f.failed())
	Order(f.events)
	return f.events, ended
}

// failed returns the error that has ended the recording, if any.
func (f *film) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// drained returns the nodes that are drained for a NodeMaintenance and wait for their maintenance.
func (f *film) drained() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name, node := range f.nodes {
		if node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
