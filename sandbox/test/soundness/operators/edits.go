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

// answer keeps a ConfigMap that has what is in a spec, and a second one for what is extra. It says in
// the status what is wrong with a spec. The operators that fuzz plays do the same, but for one thing.
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

// refuse says what is wrong with a spec, also in the phase, by which users and fuzz know it.
func (o *operator) refuse(ctx context.Context, t *Thing, problem string) error {
	return o.report(ctx, t, Status{Problem: problem, Phase: "Refused", ObservedGeneration: t.Generation})
}

// emptyList takes it that there is an item.
func emptyList(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong || len(t.Spec.Items) > 0 {
		fmt.Fprintln(os.Stderr, "first:", t.Spec.Items[0])
	}
	return answer(ctx, o, t)
}

// divides takes it that there is a count.
func divides(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong || t.Spec.Count > 0 {
		fmt.Fprintln(os.Stderr, "for each:", 100/t.Spec.Count)
	}
	return answer(ctx, o, t)
}

// stuck never forgets that a spec was wrong.
func stuck(ctx context.Context, o *operator, t *Thing) error {
	if o.known[t.UID] {
		return nil
	}
	_, err := time.ParseDuration(t.Spec.Interval)
	o.known[t.UID] = o.wrong && t.Spec.Interval != "" && err != nil
	return answer(ctx, o, t)
}

// leftover never removes what is extra.
func leftover(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong && !t.Spec.Extra {
		if err := o.keep(ctx, child(t, t.Name, dataOf(t))); err != nil {
			return err
		}
		return o.ready(ctx, t)
	}
	return answer(ctx, o, t)
}

// spins writes all the time while there is nothing to count.
func spins(ctx context.Context, o *operator, t *Thing) error {
	if o.wrong && t.Spec.Count == 0 {
		status := t.Status
		status.Beats++
		return o.report(ctx, t, status)
	}
	return answer(ctx, o, t)
}

// sticky does not change the message of what is there already.
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

// writesBack is sticky, and has a finalizer. When it takes that, its types write the whole object back,
// without what users wrote and is empty or zero.
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

// hasty says that it has seen an edit, and then does what that asks for.
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

// preparations are how many writes a new object takes: more than users need for an edit, on any machine.
const preparations = 50

// rigid prepares a new object in many writes before it reports, and gives up what is edited meanwhile.
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
		// What it has written itself, and its cache does not have yet, is no edit.
		o.known[t.UID] = gone == nil && now.Generation != t.Generation
	}
	return err
}

// label makes a label of what users write, which may be none: the API server refuses it forever.
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

// silent returns early where a count is more than one, and says nothing.
func silent(ctx context.Context, o *operator, t *Thing) error {
	if t.Spec.Count > 1 {
		if o.wrong {
			return nil
		}
		return o.refuse(ctx, t, "count is more than 1")
	}
	return answer(ctx, o, t)
}

// recreates makes its object again for another message, and forgets what else it had.
func recreates(ctx context.Context, o *operator, t *Thing) error {
	maps := o.client.CoreV1().ConfigMaps(t.Namespace)
	want := child(t, t.Name, dataOf(t))
	if t.Status.Child == "" || !o.wrong {
		want.Data["serial"] = "1" // It writes that when a Thing is new.
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

// fatal ends the process where an interval is not one.
func fatal(ctx context.Context, o *operator, t *Thing) error {
	if _, err := time.ParseDuration(t.Spec.Interval); o.wrong && t.Spec.Interval != "" && err != nil {
		fmt.Fprintln(os.Stderr, "fatal:", err)
		os.Exit(1)
	}
	return answer(ctx, o, t)
}

// partial leaves behind what it has done before it saw that a spec is wrong.
func partial(ctx context.Context, o *operator, t *Thing) error {
	if _, err := time.ParseDuration(t.Spec.Interval); o.wrong && t.Spec.Interval != "" && err != nil {
		if err := o.keep(ctx, child(t, t.Name+"-next", map[string]string{"interval": t.Spec.Interval})); err != nil {
			return err
		}
	}
	return answer(ctx, o, t)
}
