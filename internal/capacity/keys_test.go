// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestKeys checks that a Cluster built with cached class keys equals a Cluster built without them,
// even after pods have been changed, deleted or created. It also checks that the keys of deleted
// pods are dropped.
func TestKeys(t *testing.T) {
	nodes, pods, names := full(20, false)
	list, running := make([]*corev1.Node, len(nodes)), make([]*corev1.Pod, len(pods))
	for i := range nodes {
		list[i] = &nodes[i]
	}
	for i := range pods {
		running[i] = &pods[i]
	}
	keys := &Keys{}
	with := func() *Cluster {
		t.Helper()
		c, err := NewWith(t.Context(), keys, list, running)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	with()
	larger, alone := aPod("p-0-0", "ReplicaSet", "w0-7d9f", names[0], "cpu", "7"), aPod("alone", "", "", names[1], "cpu", "1")
	running = append([]*corev1.Pod{&larger, &alone}, running[2:]...)
	for range 2 {
		got, want := with(), New(list, running)
		if diff := cmp.Diff(want.Members(names).Room(nil), got.Members(names).Room(nil)); diff != "" {
			t.Errorf("the level (-without +with what is remembered):\n%s", diff)
		}
		if diff := cmp.Diff(want.Lose(names[:5], nil), got.Lose(names[:5], nil)); diff != "" {
			t.Errorf("the loss (-without +with what is remembered):\n%s", diff)
		}
	}
	if len(keys.of) != len(running) {
		t.Errorf("%d pods are remembered, want %d", len(keys.of), len(running))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := NewWith(ctx, keys, list, running[:1]); c != nil || err == nil {
		t.Errorf("after its context is done: %v, %v", c, err)
	}
	if len(keys.of) != len(running) {
		t.Errorf("%d pods are remembered by a Cluster that is not complete, want %d", len(keys.of), len(running))
	}
}
