// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestSlotsWhileReconcilesArePutOff checks the slots of a namespace whose reconciles are deferred:
// a restart releases its slot at the maximum age, and a deleted ScheduledRestart releases its slot
// immediately.
func TestSlotsWhileReconcilesArePutOff(t *testing.T) {
	request := reconcile.Request{NamespacedName: testKey}
	b := newBench(t, nil)
	if err := b.reconcile(t, time.Second); err != nil {
		t.Fatal(err)
	}
	b.deferred(t.Context(), request)
	if !b.slots.budget.Has(testKey) {
		t.Fatal("a restart under way has no slot")
	}
	b.now.SetTime(testStart.Add(b.slots.age))
	if woken, _ := b.queue.Get(); woken != request {
		t.Fatalf("woken: %v", woken)
	}
	b.deferred(t.Context(), request)
	if used, _, outlived := b.slots.budget.Usage(); used != 0 || outlived != 1 {
		t.Errorf("%d slots are used, and %d outlived; want 0 and 1", used, outlived)
	}

	deleted := newBench(t, nil)
	if err := deleted.reconcile(t, time.Second); err != nil || !deleted.slots.budget.Has(testKey) {
		t.Fatalf("a restart under way has no slot, %v", err)
	}
	restart := &tidekeeperv1.ScheduledRestart{}
	restart.Namespace, restart.Name = testKey.Namespace, testKey.Name
	if err := deleted.client.Delete(t.Context(), restart); err != nil {
		t.Fatal(err)
	}
	deleted.deferred(t.Context(), request)
	if deleted.slots.budget.Has(testKey) {
		t.Error("a ScheduledRestart that was deleted has a slot")
	}
}

// TestNewLeaderKnowsWhatWaits checks that a new leader gives the free slot to a waiting namespace
// without a restart in progress, even if another namespace requests it first.
func TestNewLeaderKnowsWhatWaits(t *testing.T) {
	b := newBench(t, nil)
	same, other := types.NamespacedName{Namespace: testKey.Namespace, Name: "same"}, types.NamespacedName{Namespace: "other", Name: "other"}
	for key, reason := range map[types.NamespacedName]string{
		same: tidekeeperv1.ReasonBudgetExhausted, other: tidekeeperv1.ReasonBudgetExhausted, {Namespace: "third", Name: "third"}: tidekeeperv1.ReasonScheduled,
	} {
		restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := b.client.Create(t.Context(), restart); err != nil {
			t.Fatal(err)
		}
		restart.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason}}
		if err := b.client.Status().Update(t.Context(), restart); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used, waiting, _ := b.slots.budget.Usage(); used != 1 || waiting != 2 {
		t.Errorf("%d slots are used and %d restarts wait, want 1 and 2", used, waiting)
	}
	if b.slots.budget.Take(same, testStart) || !b.slots.budget.Take(other, testStart.Add(time.Minute)) {
		t.Error("the namespace of the restart in progress has the second slot as well")
	}
}
