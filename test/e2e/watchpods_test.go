// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// podEvent is a change of a pod.
type podEvent struct {
	pod     *corev1.Pod
	deleted bool
}

// watchPods watches the pods of the namespace default, beginning with those that exist. The returned
// function stops the watch, and returns the changes in the order of the API server's writes.
func watchPods(t *testing.T) func() []podEvent {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cluster.Config)
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
