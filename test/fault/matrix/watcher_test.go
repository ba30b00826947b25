// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/fault/matrix/witness"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// users is the client of a run's users. It records which versions are theirs, and what
// they wrote: after a restart of the API server, a watch cannot be resumed from before
// it, and a list shows only the latest version of each object.
type users struct {
	client.Client

	mu       sync.Mutex
	versions map[string]bool
	written  []client.Object
}

func (u *users) note(o client.Object, err error) error {
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.versions[o.GetResourceVersion()] = true
		u.written = append(u.written, o.DeepCopyObject().(client.Object))
	}
	return err
}

// events returns the users' writes as events for the witness.
func (u *users) events(lists []client.ObjectList, isOfRun func(client.Object) bool) []witness.Event {
	kinds := map[string]bool{}
	for _, list := range lists {
		kinds[kindOf(list)] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var events []witness.Event
	for _, o := range u.written {
		if kinds[kindOf(o)] && isOfRun(o) {
			events = append(events, witness.Event{Type: watch.Modified, Object: o})
		}
	}
	return events
}

func (u *users) wrote(version string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.versions[version]
}

// Create implements [client.Client].
func (u *users) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return u.note(o, u.Client.Create(ctx, o, options...))
}

// Update implements [client.Client].
func (u *users) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return u.note(o, u.Client.Update(ctx, o, options...))
}

// Patch implements [client.Client].
func (u *users) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return u.note(o, u.Client.Patch(ctx, o, patch, options...))
}

// asUsers returns the same cluster, with a client that records its writes.
func asUsers(cluster *framework.Cluster) (*framework.Cluster, *users) {
	c := *cluster
	u := &users{Client: cluster.Client, versions: map[string]bool{}}
	c.Client = u
	return &c, u
}

// seen returns the kinds that the witness looks at.
func (l *testbed) seen() []client.ObjectList {
	all := []client.ObjectList{
		&corev1.NodeList{}, &nodev1.RuntimeClassList{}, &tidekeeperv1.NodePoolList{}, &tidekeeperv1.ScheduledRestartList{},
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &corev1.EventList{},
	}
	if l.argo {
		rollouts := &unstructured.UnstructuredList{}
		rollouts.SetGroupVersionKind(witness.Rollout)
		all = append(all, rollouts)
	}
	return all
}

// watcher follows all objects of one run at the API server, without the proxy.
type watcher struct {
	client client.WithWatch
	users  *users
	name   string
	// lists returns an empty list of each kind that it looks at.
	lists func() []client.ObjectList

	mu      sync.Mutex
	events  []witness.Event
	current map[string]map[types.UID]client.Object
}

// follow starts a watcher, which stops at the end of the test.
func follow(t testing.TB, c *framework.Cluster, u *users, name string, lists func() []client.ObjectList) *watcher {
	t.Helper()
	config := *c.Config
	config.UserAgent = "tidekeeper-witness"
	direct, err := client.NewWithWatch(&config, client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{client: direct, users: u, name: name, lists: lists, current: map[string]map[types.UID]client.Object{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all, begun sync.WaitGroup
	for _, list := range lists() {
		begun.Add(1)
		all.Go(func() { w.followKind(ctx, list, sync.OnceFunc(begun.Done)) })
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	// Changes before the first list of a kind would be missed.
	begun.Wait()
	return w
}

// followKind lists and watches one kind, and starts over when the API server was down
// for too long. It calls begun after the first list.
func (w *watcher) followKind(ctx context.Context, list client.ObjectList, begun func()) {
	for ctx.Err() == nil {
		if w.client.List(ctx, list) != nil {
			time.Sleep(50 * time.Millisecond) // The API server is down.
			continue
		}
		w.listed(list)
		begun()
		for version := list.GetResourceVersion(); version != "" && ctx.Err() == nil; {
			stream, err := w.client.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}})
			if err != nil {
				break
			}
			version = w.read(stream, version)
		}
	}
}

// read reads a stream until it closes, and returns the version to resume from, or ""
// if that version has expired.
func (w *watcher) read(stream watch.Interface, version string) string {
	defer stream.Stop()
	for e := range stream.ResultChan() {
		o, ok := e.Object.(client.Object)
		if e.Type == watch.Error || !ok {
			return ""
		}
		if version = o.GetResourceVersion(); e.Type != watch.Bookmark {
			w.saw(e.Type, o)
		}
	}
	return version
}

// listed turns a list into the events since the last one.
func (w *watcher) listed(list client.ObjectList) {
	there := map[types.UID]bool{}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		o := item.DeepCopyObject().(client.Object)
		there[o.GetUID()] = true
		w.saw(watch.Modified, o)
		return nil
	})
	var gone []client.Object
	w.mu.Lock()
	for uid, o := range w.current[kindOf(list)] {
		if !there[uid] {
			o = o.DeepCopyObject().(client.Object)
			o.SetResourceVersion(list.GetResourceVersion())
			gone = append(gone, o)
		}
	}
	w.mu.Unlock()
	for _, o := range gone {
		w.saw(watch.Deleted, o)
	}
}

// kindOf returns the kind of an object, or of a list's items.
func kindOf(o runtime.Object) string {
	if _, ok := o.(runtime.Unstructured); ok {
		return strings.TrimSuffix(o.GetObjectKind().GroupVersionKind().Kind, "List")
	}
	return strings.TrimSuffix(fmt.Sprintf("%T", o), "List")
}

// ofRun reports whether an object belongs to the run.
func (w *watcher) ofRun(o client.Object) bool {
	if event, ok := o.(*corev1.Event); ok {
		return strings.Contains(event.InvolvedObject.Name, w.name)
	}
	return strings.Contains(o.GetName(), w.name)
}

func (w *watcher) saw(kind watch.EventType, o client.Object) {
	if !w.ofRun(o) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, witness.Event{Type: kind, Object: o})
	of := w.current[kindOf(o)]
	if of == nil {
		of = map[types.UID]client.Object{}
		w.current[kindOf(o)] = of
	}
	if of[o.GetUID()] = o; kind == watch.Deleted {
		delete(of, o.GetUID())
	}
}

// history waits until the watcher has seen the current state, and returns everything
// that happened.
func (w *watcher) history(t testing.TB) witness.History {
	t.Helper()
	for _, list := range w.lists() {
		framework.Eventually(t, "the witness has seen every "+kindOf(list), func() error { return w.caughtUp(t.Context(), list) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	events := slices.Concat(w.events, w.users.events(w.lists(), w.ofRun))
	for i := range events {
		events[i].ByUser = w.users.wrote(events[i].Object.GetResourceVersion())
	}
	return witness.InOrder(events)
}

func (w *watcher) caughtUp(ctx context.Context, list client.ObjectList) error {
	if err := w.client.List(ctx, list); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	there := 0
	err := meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		if !w.ofRun(o) {
			return nil
		}
		there++
		if known := w.current[kindOf(o)][o.GetUID()]; known == nil || known.GetResourceVersion() != o.GetResourceVersion() {
			return fmt.Errorf("%s has a version %s that it has not seen", o.GetName(), o.GetResourceVersion())
		}
		return nil
	})
	if known := len(w.current[kindOf(list)]); err == nil && known != there {
		err = fmt.Errorf("it knows %d, but there are %d", known, there)
	}
	return err
}
