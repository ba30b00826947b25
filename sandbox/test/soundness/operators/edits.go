// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// answer keeps a ConfigMap with the fields of the Thing's spec up to date, and a second ConfigMap
// if "extra" is set. It reports an invalid spec in the status. The operators for fuzz all behave
// like this, except for one bug each.
func answer(ctx context.Context, o *operator, t *Thing) error {
	if _, err := time.ParseDuration(t.Spec.Interval); t.Spec.Interval != "" && err != nil {
		return o.refuse(ctx, t, err.Error())
	}
	if err := o.keep(ctx, child(t, t.Name, dataOf(t))); err != nil {
		return err
	}
	if err := o.keepExtra(ctx, t); err != nil {
		return err
	}
	return o.ready(ctx, t)
}

func dataOf(t *Thing) map[string]string {
	items, _ := json.Marshal(t.Spec.Items)
	return map[string]string{"message": t.Spec.Message, "interval": t.Spec.Interval, "count": fmt.Sprint(t.Spec.Count), "items": string(items)}
}

func (o *operator) keepExtra(ctx context.Context, t *Thing) error {
	if t.Spec.Extra {
		return o.keep(ctx, child(t, t.Name+"-extra", map[string]string{"of": t.Name}))
	}
	return ignoreNotFound(o.client.CoreV1().ConfigMaps(t.Namespace).Delete(ctx, t.Name+"-extra", metav1.DeleteOptions{}))
}

// refuse reports in the status that the spec is invalid. By the phase Refused, fuzz detects that
// the operator has rejected the spec.
func (o *operator) refuse(ctx context.Context, t *Thing, problem string) error {
	return o.report(ctx, t, Status{Problem: problem, Phase: "Refused", ObservedGeneration: t.Generation})
}

// emptyList prints the first item in the Thing's spec. The buggy variant panics if the list of
// items is empty.
func emptyList(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong || len(t.Spec.Items) > 0 {
		fmt.Fprintln(os.Stderr, "first:", t.Spec.Items[0])
	}
	return answer(ctx, o, t)
}

// divides computes a number divided by the count in the Thing's spec. The buggy variant panics if
// the count is 0.
func divides(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong || t.Spec.Count > 0 {
		fmt.Fprintln(os.Stderr, "for each:", 100/t.Spec.Count)
	}
	return answer(ctx, o, t)
}

// stuck handles a Thing like the function answer. The buggy variant ignores all later edits of a
// Thing whose spec was once invalid.
func stuck(ctx context.Context, o *operator, t *Thing) error {
	if o.known[t.UID] {
		return nil
	}
	_, err := time.ParseDuration(t.Spec.Interval)
	o.known[t.UID] = o.wrong && t.Spec.Interval != "" && err != nil
	return answer(ctx, o, t)
}

// leftover handles a Thing like the function answer. The buggy variant does not delete the second
// ConfigMap when "extra" is removed from the spec.
func leftover(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong && !t.Spec.Extra {
		if err := o.keep(ctx, child(t, t.Name, dataOf(t))); err != nil {
			return err
		}
		return o.ready(ctx, t)
	}
	return answer(ctx, o, t)
}

// spins handles a Thing like the function answer. The buggy variant writes the status continuously
// while the count is 0.
func spins(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong && t.Spec.Count == 0 {
		status := t.Status
		status.Beats++
		return o.report(ctx, t, status)
	}
	return answer(ctx, o, t)
}

// sticky keeps a ConfigMap with the fields of the Thing's spec up to date. The buggy variant never
// changes the message in an existing ConfigMap.
func sticky(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong {
		now, err := o.client.CoreV1().ConfigMaps(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
		if err == nil && now.Data["message"] != "" {
			t.Spec.Message = now.Data["message"]
		}
	}
	want, err := o.live(ctx, t)
	if err != nil {
		return err
	}
	if err := o.keep(ctx, child(t, t.Name, dataOf(t))); err != nil {
		return err
	}
	return o.ready(ctx, want)
}

// writesBack behaves like sticky, and adds a finalizer to the Thing. Adding the finalizer writes
// the entire object back through its Go type, which drops fields that a user has set to an empty or
// zero value.
func writesBack(ctx context.Context, o *operator, t *Thing) error {
	has, err := o.finalized(ctx, t)
	switch {
	case err != nil || !has:
		return err
	case t.DeletionTimestamp != nil:
		return o.release(ctx, t)
	}
	return sticky(ctx, o, t)
}

// hasty keeps a ConfigMap with the fields of the Thing's spec up to date, and a second ConfigMap if
// "extra" is set. It then reports the edit as observed in the status. It rejects an invalid spec.
// The buggy variant keeps only the first ConfigMap, and reports an edit as observed before it
// updates the ConfigMap. If the operator is killed in between or the update fails, the ConfigMap
// remains outdated, because the buggy variant ignores edits that are reported as observed.
func hasty(ctx context.Context, o *operator, t *Thing) error {
	if !o.wrong {
		return answer(ctx, o, t)
	}
	if t.Status.ObservedGeneration == t.Generation {
		return nil
	}
	if err := o.ready(ctx, t); err != nil {
		return err
	}
	return o.keep(ctx, child(t, t.Name, dataOf(t)))
}

// preparations is the number of writes with which rigid prepares a new Thing. These writes take
// longer than a user's edit, even on a fast machine.
const preparations = 50

// rigid prepares a new Thing with many writes before it reports the Thing as ready. The buggy
// variant gives up on a Thing that is edited during the preparation.
func rigid(ctx context.Context, o *operator, t *Thing) error {
	if o.known[t.UID] {
		return nil
	}
	first := preparations
	if !t.Status.Ready {
		first = 1
	}
	for i := first; i <= preparations; i++ {
		prepared := dataOf(t)
		prepared["prepared"] = fmt.Sprint(i)
		if err := o.keep(ctx, child(t, t.Name, prepared)); err != nil {
			return err
		}
	}
	err := o.ready(ctx, t)
	if o.wrong && apierrors.IsConflict(err) {
		now, gone := o.live(ctx, t)
		// A conflict alone does not prove an edit, because it may be with the operator's own write,
		// which its cache does not show yet. An edit changes the generation.
		o.known[t.UID] = gone == nil && now.Generation != t.Generation
	}
	return err
}

// label copies the message in the Thing's spec into a label. The buggy variant does not validate
// the value, and retries forever if the API server rejects it.
func label(ctx context.Context, o *operator, t *Thing) error {
	if problems := validation.IsValidLabelValue(t.Spec.Message); len(problems) > 0 && !o.wrong {
		return o.refuse(ctx, t, problems[0])
	}
	want := child(t, t.Name, dataOf(t))
	want.Labels = map[string]string{"message": t.Spec.Message}
	maps := o.client.CoreV1().ConfigMaps(t.Namespace)
	now, err := maps.Get(ctx, t.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, want, metav1.CreateOptions{})
	case err == nil && (now.Labels["message"] != t.Spec.Message || !same(now, want)):
		now.Labels, now.Data = want.Labels, want.Data
		_, err = maps.Update(ctx, now, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	return o.ready(ctx, t)
}

// silent rejects a count greater than 1. The buggy variant ignores such a spec without reporting
// it.
func silent(ctx context.Context, o *operator, t *Thing) error {
	if t.Spec.Count > 1 {
		if o.wrong {
			return nil
		}
		return o.refuse(ctx, t, "count is more than 1")
	}
	return answer(ctx, o, t)
}

// recreates deletes and recreates a Thing's ConfigMap when the message changes. In the buggy
// variant, the other data of the old ConfigMap is lost.
func recreates(ctx context.Context, o *operator, t *Thing) error {
	maps := o.client.CoreV1().ConfigMaps(t.Namespace)
	want := child(t, t.Name, dataOf(t))
	if t.Status.Child == "" || !o.wrong {
		want.Data["serial"] = "1" // A new Thing's ConfigMap always gets a serial.
	}
	now, err := maps.Get(ctx, t.Name, metav1.GetOptions{})
	if err == nil && now.Data["message"] != t.Spec.Message {
		if err = maps.Delete(ctx, t.Name, metav1.DeleteOptions{}); err == nil {
			_, err = maps.Create(ctx, want, metav1.CreateOptions{})
		}
	} else {
		if err == nil && now.Data["serial"] != "" {
			want.Data["serial"] = now.Data["serial"]
		}
		if err = ignoreNotFound(err); err == nil {
			err = o.keep(ctx, want)
		}
	}
	if err != nil {
		return err
	}
	return o.report(ctx, t, Status{Ready: true, Child: t.Name, ObservedGeneration: t.Generation})
}

// fatal handles a Thing like the function answer. The buggy variant exits if the interval is not a
// valid duration.
func fatal(ctx context.Context, o *operator, t *Thing) error {
	if _, err := time.ParseDuration(t.Spec.Interval); o.wrong && t.Spec.Interval != "" && err != nil {
		fmt.Fprintln(os.Stderr, "fatal:", err)
		os.Exit(1)
	}
	return answer(ctx, o, t)
}

// partial handles a Thing like the function answer. The buggy variant writes a ConfigMap before it
// detects that the spec is invalid, and leaves this ConfigMap behind.
func partial(ctx context.Context, o *operator, t *Thing) error {
	if _, err := time.ParseDuration(t.Spec.Interval); o.wrong && t.Spec.Interval != "" && err != nil {
		if err := o.keep(ctx, child(t, t.Name+"-next", map[string]string{"interval": t.Spec.Interval})); err != nil {
			return err
		}
	}
	return answer(ctx, o, t)
}
