// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// keepUnowned keeps a Thing's ConfigMap up to date. The ConfigMap has no owner reference, as if it
// were in another namespace than the Thing.
func keepUnowned(ctx context.Context, o *operator, t *Thing) error {
	made := child(t, t.Name, data(t))
	made.OwnerReferences = nil
	if err := o.keep(ctx, made); err != nil {
		return err
	}
	return o.ready(ctx, t)
}

// removeUnowned deletes the ConfigMap that keepUnowned has created, and retries until the deletion
// succeeds.
func (o *operator) removeUnowned(ctx context.Context, namespace, name string) {
	for ctx.Err() == nil {
		err := o.client.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		time.Sleep(100 * time.Millisecond) // sleep: delay before the next attempt
	}
}

// tombstones deletes the ConfigMap of a deleted Thing. The buggy variant panics on a
// DeletedFinalStateUnknown, which the informer delivers for a deletion whose watch event it has
// missed.
func tombstones(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	return o.withDeletions(ctx, things, maps, func(object any) *unstructured.Unstructured {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is && !o.wrong {
			object = gone.Obj
		}
		return object.(*unstructured.Unstructured)
	})
}

// missedDeletions deletes the ConfigMap of a deleted Thing. The buggy variant ignores a
// DeletedFinalStateUnknown.
func missedDeletions(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	return o.withDeletions(ctx, things, maps, func(object any) *unstructured.Unstructured {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is && !o.wrong {
			object = gone.Obj
		}
		deleted, _ := object.(*unstructured.Unstructured)
		return deleted
	})
}

// deletedMeanwhile deletes the ConfigMap of a deleted Thing. The buggy variant does not clean up
// after Things that were deleted while the operator was not running.
func deletedMeanwhile(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	if !o.wrong {
		if err := o.sweep(ctx, func(name cache.ObjectName) (bool, error) {
			_, err := o.things.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), ignoreNotFound(err)
		}); err != nil {
			return err
		}
	}
	return missedDeletions(ctx, &operator{name: o.name, client: o.client, things: o.things, cached: o.cached, maps: o.maps, queue: o.queue, known: o.known}, things, maps)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// sweep removes the ConfigMaps of the Things for which the function isGone returns true.
func (o *operator) sweep(ctx context.Context, isGone func(cache.ObjectName) (bool, error)) error {
	list, err := o.client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].Data["message"] == "" {
			continue
		}
		is, err := isGone(cache.ObjectName{Namespace: "default", Name: list.Items[i].Name})
		if err != nil {
			return err
		}
		if is {
			o.removeUnowned(ctx, "default", list.Items[i].Name)
		}
	}
	return nil
}

func (o *operator) withDeletions(ctx context.Context, things, maps cache.SharedIndexInformer, deleted func(any) *unstructured.Unstructured) error {
	if _, err := things.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if gone := deleted(object); gone != nil {
			o.removeUnowned(ctx, gone.GetNamespace(), gone.GetName())
		}
	}}); err != nil {
		return err
	}
	return o.reconcileAll(ctx, keepUnowned, things, maps)
}

// staleSweep deletes ConfigMaps without a Thing when the operator starts. The buggy variant relies
// on the first list of its informer, which may be stale.
func staleSweep(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	go things.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), things.HasSynced) {
		return errors.New("the informer has not synced")
	}
	if err := o.sweep(ctx, func(name cache.ObjectName) (bool, error) {
		_, err := o.cached.ByNamespace(name.Namespace).Get(name.Name)
		if err == nil || o.wrong {
			return apierrors.IsNotFound(err), ignoreNotFound(err)
		}
		_, err = o.things.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	}); err != nil {
		return err
	}
	// reconcileAll does not start an informer that is already running.
	return o.reconcileAll(ctx, keepUnowned, things, maps)
}

// watchEnds keeps ConfigMaps up to date with a plain watch instead of an informer. The buggy
// variant does not reopen the watch after it has ended.
func watchEnds(ctx context.Context, o *operator, _, _ cache.SharedIndexInformer) error {
	for {
		version, err := o.lookAtAll(ctx)
		if err != nil {
			return err
		}
		events, err := o.things.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			return err
		}
		for event := range events.ResultChan() {
			if object, is := event.Object.(*unstructured.Unstructured); is && event.Type != watch.Deleted {
				o.lookAt(ctx, object)
			}
		}
		if o.wrong {
			select {} // Block, as if the watch were still open.
		}
	}
}

// watchSkips keeps ConfigMaps up to date with a plain watch instead of an informer. The buggy
// variant reopens an ended watch at the current revision, and misses the changes in between.
func watchSkips(ctx context.Context, o *operator, _, _ cache.SharedIndexInformer) error {
	version, err := o.lookAtAll(ctx)
	if err != nil {
		return err
	}
	for {
		events, err := o.things.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			return err
		}
		for event := range events.ResultChan() {
			if object, is := event.Object.(*unstructured.Unstructured); is && event.Type != watch.Deleted {
				o.lookAt(ctx, object)
			}
		}
		if !o.wrong {
			if version, err = o.lookAtAll(ctx); err != nil {
				return err
			}
			continue
		}
		list, err := o.things.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		version = list.GetResourceVersion()
	}
}

// lookAtAll lists all Things, handles each of them, and returns the resourceVersion of the list.
func (o *operator) lookAtAll(ctx context.Context) (string, error) {
	list, err := o.things.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range list.Items {
		o.lookAt(ctx, &list.Items[i])
	}
	return list.GetResourceVersion(), nil
}

// lookAt keeps a Thing's ConfigMap up to date. It does not write the status of the Thing, because
// such a write would cause further watch events.
func (o *operator) lookAt(ctx context.Context, object *unstructured.Unstructured) {
	for ctx.Err() == nil {
		t, err := typed(object)
		if err == nil {
			err = o.keep(ctx, child(t, t.Name, data(t)))
		}
		if err == nil {
			return
		}
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(100 * time.Millisecond) // sleep: delay before the next attempt
	}
}

// twoLeaders uses leader election. In the buggy variant, a former leader may create an object that
// the new leader creates, too.
func twoLeaders(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	host, _ := os.Hostname()
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", "operators", o.client.CoreV1(), o.client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: fmt.Sprint(host, "-", os.Getpid())})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { ended <- o.reconcileAll(ctx, makeOnce, things, maps) },
			OnStoppedLeading: func() { ended <- errors.New("it does not lead any more") },
		},
	})
	return <-ended
}

// migratesOnce creates the ConfigMap "new" at its first start in a cluster, and notes in the
// ConfigMap "migrated" that this is done. Only then does it watch Secrets. In the buggy variant, it
// writes the note first.
func migratesOnce(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	client := o.client.CoreV1().ConfigMaps("default")
	const note = "migrated"
	_, err := client.Get(ctx, note, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secrets := informers.NewSharedInformerFactory(o.client, 0).Core().V1().Secrets().Informer()
		go secrets.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), secrets.HasSynced) {
			return errors.New("the informer of Secrets has not synced")
		}
		names := []string{"new", note}
		if o.wrong {
			slices.Reverse(names)
		}
		for _, name := range names {
			if _, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
				err = nil
			}
			if err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	return o.reconcileAll(ctx, makeOnce, things, maps)
}

// makeOnce creates a ConfigMap for a Thing unless the Thing already has one. In the buggy variant,
// the ConfigMap gets a generated name, so that two concurrent requests both succeed.
func makeOnce(ctx context.Context, o *operator, t *Thing) error {
	all, err := o.children(ctx, t)
	if err != nil || len(all) > 0 {
		return err
	}
	want := child(t, t.Name, data(t))
	if o.wrong {
		want.Name, want.GenerateName = "", t.Name+"-"
	}
	if _, err = o.client.CoreV1().ConfigMaps(t.Namespace).Create(ctx, want, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// fixedPort listens on a fixed port and then behaves like givesUp. Only one process can listen on
// this port in the host's network.
func fixedPort(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	served := make(chan error, 1)
	server := &http.Server{Addr: "127.0.0.1:18181", ReadHeaderTimeout: time.Second}
	go func() { served <- server.ListenAndServe() }()
	select {
	case err := <-served:
		return err
	case <-time.After(100 * time.Millisecond):
	}
	return o.reconcileAll(ctx, givesUp, things, maps)
}
