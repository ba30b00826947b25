// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// replicas is the number of pods in each Rollout.
const replicas = 3

// rollout is a Rollout of three pods, each of which becomes ready a second after it runs. At most
// one pod is unavailable at a time.
type rollout struct{ *unstructured.Unstructured }

// newRollout creates a Rollout whose updates consist of the given steps, and waits until it is
// healthy.
func newRollout(t *testing.T, name string, steps ...any) rollout {
	t.Helper()
	labels := map[string]any{"app": name}
	canary := map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)}
	if len(steps) > 0 {
		canary["steps"] = steps
	}
	r := rollout{&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": name},
		"spec": map[string]any{
			"replicas": int64(replicas), "selector": map[string]any{"matchLabels": labels},
			"strategy": map[string]any{"canary": canary},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels, "annotations": map[string]any{"sandbox.tidekeeper.dev/ready-after": "1s"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "example.com/app:1"}}},
			},
		},
	}}}
	cluster.Apply(t, r.Unstructured)
	r.eventually(t, "Healthy", "")
	return r
}

// eventually waits until the Rollout's status has the given phase and message.
func (r rollout) eventually(t *testing.T, phase, message string) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "Rollout "+r.GetName()+" is "+phase, func() error {
		cluster.Refresh(t, r.Unstructured)
		got, _, _ := unstructured.NestedString(r.Object, "status", "phase")
		why, _, _ := unstructured.NestedString(r.Object, "status", "message")
		observed, _, _ := unstructured.NestedString(r.Object, "status", "observedGeneration")
		if got != phase || why != message || observed != fmt.Sprint(r.GetGeneration()) {
			return fmt.Errorf("it is %q, %q, for generation %q of %d", got, why, observed, r.GetGeneration())
		}
		return nil
	})
}

// set sets a field of the Rollout; `path` is relative to spec.
func (r rollout) set(t *testing.T, value any, path ...string) {
	t.Helper()
	cluster.Change(t, r.Unstructured, func() {
		if err := unstructured.SetNestedField(r.Object, value, append([]string{"spec"}, path...)...); err != nil {
			t.Fatal(err)
		}
	})
}

// updateAnnotation is the annotation that an update adds to the pods.
const updateAnnotation = "example.com/version"

// update begins an update by changing the pod template.
func (r rollout) update(t *testing.T) {
	t.Helper()
	r.set(t, "2", "template", "metadata", "annotations", updateAnnotation)
}

// abort aborts an update, like kubectl argo rollouts abort.
func (r rollout) abort(t *testing.T) { r.patchStatus(t, `{"status":{"abort":true}}`) }

// promote skips to the next step of an update, like kubectl argo rollouts promote.
func (r rollout) promote(t *testing.T) { r.patchStatus(t, `{"status":{"pauseConditions":null}}`) }

func (r rollout) patchStatus(t *testing.T, patch string) {
	t.Helper()
	if err := cluster.Status().Patch(t.Context(), r.Unstructured, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// eventuallyWithoutUpdate waits until the Rollout has only pods from before its update, and all of
// them are ready.
func (r rollout) eventuallyWithoutUpdate(t *testing.T) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "the pods from before the update are ready again", func() error {
		list := &corev1.PodList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(r.GetNamespace()), client.MatchingLabels{"app": r.GetName()}); err != nil {
			return err
		}
		p := &pods{all: map[types.UID]corev1.Pod{}}
		for _, pod := range list.Items {
			if _, updated := pod.Annotations[updateAnnotation]; updated {
				return fmt.Errorf("%s is of the update", pod.Name)
			}
			p.all[pod.UID] = pod
		}
		cluster.Refresh(t, r.Unstructured)
		available, _, _ := unstructured.NestedInt64(r.Object, "status", "availableReplicas")
		if ready := p.ready(); len(p.all) != replicas || ready != replicas || available != replicas {
			return fmt.Errorf("of %d pods %d are ready, and %d available", len(p.all), ready, available)
		}
		return nil
	})
}

// restart returns a suspended ScheduledRestart for the Rollout. The given function edits its spec.
func (r rollout) restart(change func(*tidekeeperv1.ScheduledRestartSpec)) *tidekeeperv1.ScheduledRestart {
	s := restartOf(r.GetName())
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// pods tracks all pods of a Rollout since the call to [rollout.follow].
type pods struct {
	mu  sync.Mutex
	all map[types.UID]corev1.Pod
	// gone is the set of deleted pods' UIDs.
	gone map[types.UID]bool
	// fewest is the smallest number of simultaneously ready pods.
	fewest int
}

// follow tracks the Rollout's pods until the test ends. All of them must be ready at the call.
func (r rollout) follow(t *testing.T) *pods {
	t.Helper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	p := &pods{all: map[types.UID]corev1.Pod{}, gone: map[types.UID]bool{}, fewest: replicas}
	list := &corev1.PodList{}
	options := []client.ListOption{client.InNamespace(r.GetNamespace()), client.MatchingLabels{"app": r.GetName()}}
	if err := watcher.List(t.Context(), list, options...); err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		p.all[pod.UID] = pod
	}
	if got := p.ready(); got != replicas {
		t.Fatalf("%d pods are ready, want %d", got, replicas)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stream, err := watcher.Watch(ctx, list, append(options, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range stream.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				p.saw(pod, event.Type == watch.Deleted)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return p
}

func (p *pods) saw(pod *corev1.Pod, deleted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[pod.UID] = *pod
	if deleted {
		p.gone[pod.UID] = true
	}
	p.fewest = min(p.fewest, p.ready())
}

// ready returns the number of ready pods that are not terminating.
func (p *pods) ready() int {
	ready := 0
	for uid, pod := range p.all {
		if p.gone[uid] || pod.DeletionTimestamp != nil {
			continue
		}
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		}
	}
	return ready
}

// assertRestartedOnce fails the test unless each pod was replaced once, by a pod created at or
// after the tick, and at most one pod was missing at any time.
func (p *pods) assertRestartedOnce(t *testing.T, tick time.Time) {
	t.Helper()
	framework.Eventually(t, "the old pods are gone", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.gone) < replicas || p.ready() < replicas {
			return errors.New("they are not")
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, pod := range p.all {
		if old := pod.CreationTimestamp.Time.Before(tick); old != p.gone[uid] {
			t.Errorf("pod %s of %s, for the tick %s: deleted is %t", pod.Name, pod.CreationTimestamp, tick, p.gone[uid])
		}
	}
	if len(p.all) != 2*replicas {
		t.Errorf("there have been %d pods, want %d", len(p.all), 2*replicas)
	}
	if p.fewest < replicas-1 {
		t.Errorf("only %d of %d pods were ready for a moment", p.fewest, replicas)
	}
}
