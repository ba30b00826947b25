// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// keepUnowned keeps a ConfigMap that belongs to no one, as if it were in another namespace.
func keepUnowned(ctx context.Context, o *operator, t *Thing) error {
	made := child(t, t.Name, data(t))
	made.OwnerReferences = nil
	if err := o.keep(ctx, made); err != nil {
		return err
	}
	return o.ready(ctx, t)
}

// removeUnowned removes it again.
func (o *operator) removeUnowned(ctx context.Context, namespace, name string) {
	for ctx.Err() == nil {
		err := o.client.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		time.Sleep(100 * time.Millisecond) // sleep: before it tries again
	}
}

// tombstones removes what belongs to a Thing when that is deleted. It expects the Thing itself from
// its cache, which has something else for it if the deletion was found in a list.
func tombstones(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	return o.withDeletions(ctx, things, maps, func(object any) *unstructured.Unstructured {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is && !o.wrong {
			object = gone.Obj
		}
		return object.(*unstructured.Unstructured)
	})
}

// missedDeletions does the same, and does nothing if the deletion was found in a list.
func missedDeletions(ctx context.Context, o *operator, things, maps cache.SharedIndexInformer) error {
	return o.withDeletions(ctx, things, maps, func(object any) *unstructured.Unstructured {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is && !o.wrong {
			object = gone.Obj
		}
		deleted, _ := object.(*unstructured.Unstructured)
		return deleted
	})
}

// deletedMeanwhile does it too, and does not look for what was deleted while it did not run.
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

// sweep removes the ConfigMaps whose Things are gone.
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

// staleSweep removes at its start what belongs to Things that its first list does not have.
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
	// The informer runs already, and is not started again.
	return o.reconcileAll(ctx, keepUnowned, things, maps)
}

// watchEnds has a watch of its own, which it does not open again.
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
			select {} // It believes that it watches.
		}
	}
}

// watchSkips opens its watch again where all is now, and does not look at what was in between.
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

// lookAtAll looks at all Things, and returns as of when they were listed.
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

// lookAt keeps a ConfigMap for a Thing, and reports nothing, so that nothing has it look again.
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
		time.Sleep(100 * time.Millisecond) // sleep: before it tries again
	}
}

// twoLeaders elects its leader, and makes an object that one that leads no more may make once more.
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

// makeOnce makes a ConfigMap unless there is one.
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

// fixedPort serves where all of its kind do.
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
