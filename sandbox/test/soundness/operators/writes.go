// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// doneFirst creates a ConfigMap and then reports the Thing as ready. The buggy variant reports the
// Thing as ready first.
func doneFirst(ctx context.Context, o *operator, t *Thing) error {
	if t.Status.Ready {
		return nil
	}
	steps := []func() error{
		func() error { return o.keep(ctx, child(t, t.Name, data(t))) },
		func() error { return o.ready(ctx, t) },
	}
	if o.wrong {
		slices.Reverse(steps)
	}
	if err := steps[0](); err != nil {
		return err
	}
	return steps[1]()
}

// generatedNames creates a ConfigMap with a generated name, and records the name in the status. The
// buggy variant does not check for an existing ConfigMap whose name it failed to record.
func generatedNames(ctx context.Context, o *operator, t *Thing) error {
	if t.Status.Child != "" || o.known[t.UID] {
		return nil
	}
	var made *corev1.ConfigMap
	if !o.wrong {
		all, err := o.children(ctx, t)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			made = all[0]
		}
	}
	if made == nil {
		want := child(t, "", data(t))
		want.GenerateName = t.Name + "-"
		var err error
		if made, err = o.client.CoreV1().ConfigMaps(t.Namespace).Create(ctx, want, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	// Remember that the ConfigMap exists until the cache shows the new status.
	o.known[t.UID] = true
	err := o.report(ctx, t, Status{Ready: true, Child: made.Name, ObservedGeneration: t.Generation})
	if err != nil {
		delete(o.known, t.UID)
	}
	return err
}

// roles creates three ConfigMaps, one of which has the role "leader". In the buggy variant, each
// process gives this role to the first ConfigMap that it creates.
func roles(ctx context.Context, o *operator, t *Thing) error {
	for {
		all, err := o.children(ctx, t)
		if err != nil {
			return err
		}
		if len(all) >= 3 {
			return o.ready(ctx, t)
		}
		led := slices.ContainsFunc(all, func(c *corev1.ConfigMap) bool { return c.Data["role"] == "leader" })
		if o.wrong {
			led = o.known[t.UID]
		}
		role := "leader"
		if led {
			role = "follower"
		}
		want := child(t, "", map[string]string{"role": role})
		want.GenerateName = t.Name + "-"
		if _, err := o.client.CoreV1().ConfigMaps(t.Namespace).Create(ctx, want, metav1.CreateOptions{}); err != nil {
			return err
		}
		o.known[t.UID] = true
	}
}

// restless keeps a Thing's ConfigMap up to date. The buggy variant keeps writing another ConfigMap
// after an internal server error.
func restless(ctx context.Context, o *operator, t *Thing) error {
	err := o.keep(ctx, child(t, t.Name, data(t)))
	if err == nil {
		err = o.ready(ctx, t)
	}
	if apierrors.IsInternalError(err) && o.wrong && !o.known[t.UID] {
		o.known[t.UID] = true
		go func() {
			for range time.Tick(100 * time.Millisecond) {
				for _, text := range []string{"tick", "tock"} {
					_ = o.keep(ctx, child(t, t.Name+"-clock", map[string]string{"says": text}))
				}
			}
		}()
	}
	return err
}

// impatient reports a Thing as ready. The buggy variant retries after a conflict without delay and
// with the object in its cache, which may still be stale.
func impatient(ctx context.Context, o *operator, t *Thing) error {
	err := o.ready(ctx, t)
	for o.wrong && apierrors.IsConflict(err) {
		if now, gone := o.cached.ByNamespace(t.Namespace).Get(t.Name); gone == nil && now != nil {
			err = o.ready(ctx, t)
			if fresh, e := o.thing(nameOf(t)); e == nil {
				t = fresh
			}
		}
	}
	return err
}

// asksFast keeps a Thing's ConfigMap up to date. The buggy variant reads the ConfigMap every 10 ms
// after an internal server error.
func asksFast(ctx context.Context, o *operator, t *Thing) error {
	err := o.keep(ctx, child(t, t.Name, data(t)))
	if err == nil {
		err = o.ready(ctx, t)
	}
	if apierrors.IsInternalError(err) && o.wrong && !o.known[t.UID] {
		o.known[t.UID] = true
		go func() {
			for range time.Tick(10 * time.Millisecond) {
				_, _ = o.client.CoreV1().ConfigMaps(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
			}
		}()
	}
	return err
}

// givesUp keeps a Thing's ConfigMap up to date. The buggy variant does not retry a failed write.
func givesUp(ctx context.Context, o *operator, t *Thing) error {
	err := o.keep(ctx, child(t, t.Name, data(t)))
	if err != nil && o.wrong {
		fmt.Fprintln(os.Stderr, "given up:", err)
		return nil
	}
	if err != nil {
		return err
	}
	return o.ready(ctx, t)
}

// swallows updates a Thing's ConfigMap and then reports the Thing as ready, unless
// status.observedGeneration is already current. The buggy variant treats a conflict as a successful
// update.
func swallows(ctx context.Context, o *operator, t *Thing) error {
	if t.Status.ObservedGeneration == t.Generation {
		return nil
	}
	if err := o.keep(ctx, child(t, t.Name, data(t))); err != nil && (!o.wrong || !apierrors.IsConflict(err)) {
		return err
	}
	return o.ready(ctx, t)
}

// nilObject creates a ConfigMap and reports its name. The buggy variant uses the nil result of a
// failed request, and panics.
func nilObject(ctx context.Context, o *operator, t *Thing) error {
	maps := o.client.CoreV1().ConfigMaps(t.Namespace)
	made, err := maps.Create(ctx, child(t, t.Name, data(t)), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = maps.Get(ctx, t.Name, metav1.GetOptions{})
	}
	if err != nil {
		if !o.wrong {
			return err
		}
		made = nil
	}
	return o.report(ctx, t, Status{Ready: true, Child: made.Name, ObservedGeneration: t.Generation})
}

// exits keeps a Thing's ConfigMap up to date. The buggy variant exits if a write fails with any
// error other than a conflict.
func exits(ctx context.Context, o *operator, t *Thing) error {
	err := o.keep(ctx, child(t, t.Name, data(t)))
	if err == nil {
		err = o.ready(ctx, t)
	}
	if err != nil && !apierrors.IsConflict(err) && o.wrong {
		fmt.Fprintln(os.Stderr, "fatal:", err)
		os.Exit(3)
	}
	return err
}
