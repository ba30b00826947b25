// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const finalizer = "example.com/clean-up"

// finalized reports whether a Thing has the finalizer. If the finalizer is missing and the Thing is
// not being deleted, it adds the finalizer and returns false.
func (o *operator) finalized(ctx context.Context, t *Thing) (bool, error) {
	if t.DeletionTimestamp != nil || slices.Contains(t.Finalizers, finalizer) {
		return slices.Contains(t.Finalizers, finalizer), nil
	}
	t.Finalizers = append(t.Finalizers, finalizer)
	return false, o.update(ctx, t)
}

// release removes the finalizer from a Thing.
func (o *operator) release(ctx context.Context, t *Thing) error {
	t.Finalizers = slices.DeleteFunc(t.Finalizers, func(f string) bool { return f == finalizer })
	return o.update(ctx, t)
}

// finalizerMemory removes its finalizer from a deleted Thing. The buggy variant does so only if the
// same process has seen the Thing before the deletion.
func finalizerMemory(ctx context.Context, o *operator, t *Thing) error {
	if t.DeletionTimestamp == nil {
		o.known[t.UID] = true
	}
	has, err := o.finalized(ctx, t)
	switch {
	case err != nil || !has:
		return err
	case t.DeletionTimestamp == nil:
		return o.ready(ctx, t)
	case o.wrong && !o.known[t.UID]:
		return nil
	}
	return o.release(ctx, t)
}

// ignoresError deletes the ConfigMap of a deleted Thing before it removes the finalizer. The buggy
// variant ignores an error of the deletion and removes the finalizer anyway.
func ignoresError(ctx context.Context, o *operator, t *Thing) error {
	has, err := o.finalized(ctx, t)
	if err != nil || !has {
		return err
	}
	// The ConfigMap has no owner reference, as if it were in another namespace.
	made := child(t, t.Name, data(t))
	made.OwnerReferences = nil
	if t.DeletionTimestamp == nil {
		if err := o.keep(ctx, made); err != nil {
			return err
		}
		return o.ready(ctx, t)
	}
	err = o.client.CoreV1().ConfigMaps(t.Namespace).Delete(ctx, t.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !o.wrong {
		return err
	}
	return o.release(ctx, t)
}

// ownerLater creates a ConfigMap that a Thing owns. The buggy variant adds the owner reference in a
// second write.
func ownerLater(ctx context.Context, o *operator, t *Thing) error {
	maps := o.client.CoreV1().ConfigMaps(t.Namespace)
	want := child(t, t.Name, data(t))
	owners := want.OwnerReferences
	if o.wrong {
		want.OwnerReferences = nil
	}
	made, err := maps.Create(ctx, want, metav1.CreateOptions{})
	switch {
	case err == nil && o.wrong:
		made.OwnerReferences = owners
		if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	case err != nil && !apierrors.IsAlreadyExists(err):
		return err
	}
	return o.ready(ctx, t)
}

// byName deletes the ConfigMap of a deleted Thing. The buggy variant does not check the ConfigMap's
// owner, and may delete the ConfigMap of a new Thing with the same name.
func byName(ctx context.Context, o *operator, t *Thing) error {
	has, err := o.finalized(ctx, t)
	if err != nil || !has {
		return err
	}
	made := child(t, t.Name, data(t))
	made.OwnerReferences[0].BlockOwnerDeletion = nil
	if t.DeletionTimestamp == nil {
		if err := o.keep(ctx, made); err != nil {
			return err
		}
		return o.ready(ctx, t)
	}
	maps := o.client.CoreV1().ConfigMaps(t.Namespace)
	now, err := maps.Get(ctx, t.Name, metav1.GetOptions{})
	if err == nil && (o.wrong || metav1.IsControlledBy(now, t)) {
		err = maps.Delete(ctx, t.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &now.UID}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return o.release(ctx, t)
}

// slowDelete takes 1.5 s to clean up after a deleted Thing. The buggy variant removes the finalizer
// first, and leaves the ConfigMap behind if the process is killed during the cleanup.
func slowDelete(ctx context.Context, o *operator, t *Thing) error {
	has, err := o.finalized(ctx, t)
	if err != nil || !has {
		return err
	}
	if t.DeletionTimestamp == nil {
		return keepUnowned(ctx, o, t)
	}
	if o.wrong {
		// Remove the finalizer first, so that users do not have to wait.
		if err := o.release(ctx, t); err != nil {
			return err
		}
		time.Sleep(1500 * time.Millisecond) // sleep: simulates a slow cleanup
		o.removeUnowned(ctx, t.Namespace, t.Name)
		return nil
	}
	time.Sleep(1500 * time.Millisecond) // sleep: simulates a slow cleanup
	o.removeUnowned(ctx, t.Namespace, t.Name)
	return o.release(ctx, t)
}
