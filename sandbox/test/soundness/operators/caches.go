// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

func nameOf(t *Thing) cache.ObjectName {
	return cache.ObjectName{Namespace: t.Namespace, Name: t.Name}
}

// noExpectations creates ConfigMaps up to the count in the spec. The buggy variant counts the
// ConfigMaps in its cache, where the most recent ones may still be missing.
func noExpectations(ctx context.Context, o *operator, t *Thing) error {
	all, err := o.children(ctx, t)
	if o.wrong {
		all = nil
		cached, listed := o.maps.ConfigMaps(t.Namespace).List(labels.Everything())
		for _, c := range cached {
			if metav1.IsControlledBy(c, t) {
				all = append(all, c)
			}
		}
		err = listed
	}
	if err != nil {
		return err
	}
	for range max(int(t.Spec.Count)-len(all), 0) {
		want := child(t, "", map[string]string{"of": t.Name})
		want.GenerateName = t.Name + "-"
		if _, err := o.client.CoreV1().ConfigMaps(t.Namespace).Create(ctx, want, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil // The events of the created ConfigMaps trigger another reconcile.
}

// overwrites sets an annotation on the Thing. The buggy variant retries a failed update with the
// object from its cache and the current resourceVersion, which overwrites other clients' changes.
func overwrites(ctx context.Context, o *operator, t *Thing) error {
	if t.Annotations["example.com/says"] == t.Spec.Message || o.known[t.UID] {
		return o.ready(ctx, t)
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations["example.com/says"] = t.Spec.Message
	err := o.update(ctx, t)
	if err != nil && o.wrong {
		now, err := o.live(ctx, t)
		if err != nil {
			return err
		}
		t.ResourceVersion = now.ResourceVersion
		if err := o.update(ctx, t); err != nil {
			return err
		}
		o.known[t.UID] = true // Ignore older watch events, which would trigger another write.
		return nil
	}
	return err
}

// observedTooNew acts on the Thing in its cache. The buggy variant reports the Thing's current
// generation as observed, although the generation in the cache may be older.
func observedTooNew(ctx context.Context, o *operator, t *Thing) error {
	if _, err := o.maps.ConfigMaps(t.Namespace).Get(t.Name); err == nil && t.Status.ObservedGeneration == t.Generation {
		return nil
	}
	if err := o.keep(ctx, child(t, t.Name, data(t))); err != nil {
		return err
	}
	if o.wrong {
		now, err := o.live(ctx, t)
		if err != nil {
			return err
		}
		t = now
	}
	return o.ready(ctx, t)
}
