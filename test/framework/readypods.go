// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// WatchReady watches pods by their label app. The returned function stops the watch, and lists the
// moments at which an app had fewer ready pods than it must have, in the order of the API server's
// writes.
func (c *Cluster) WatchReady(t testing.TB, least map[string]int) func() []string {
	t.Helper()
	w := c.watchPods(t)
	return func() (problems []string) {
		ready := map[string]map[string]bool{}
		for _, e := range w() {
			app := e.pod.Labels["app"]
			if _, watched := least[app]; !watched {
				continue
			}
			if ready[app] == nil {
				ready[app] = map[string]bool{}
			}
			is := !e.deleted && e.pod.DeletionTimestamp == nil && slices.ContainsFunc(e.pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			before := len(ready[app])
			if is {
				ready[app][e.pod.Name] = true
			} else {
				delete(ready[app], e.pod.Name)
			}
			if now := len(ready[app]); now < before && now < least[app] {
				problems = append(problems, fmt.Sprintf("%s has %d ready pods when %s goes, want %d", app, now, e.pod.Name, least[app]))
			}
		}
		return problems
	}
}

// podEvent is a change of a pod.
type podEvent struct {
	pod     *corev1.Pod
	deleted bool
}

// watchPods watches the pods of the namespace default, beginning with those that exist. The returned
// function stops the watch, and returns the changes in the order of the API server's writes.
func (c *Cluster) watchPods(t testing.TB) func() []podEvent {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	pods := clients.CoreV1().Pods(metav1.NamespaceDefault)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []podEvent
	for i := range list.Items {
		all = append(all, podEvent{pod: &list.Items[i]})
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	w, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				all = append(all, podEvent{pod, event.Type == watch.Deleted})
			}
		}
	})
	return func() []podEvent {
		cancel()
		done.Wait()
		return all
	}
}
