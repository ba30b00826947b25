// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// Of what comes first, only that has the others decided again which their decisions read.
func TestWhatChangesTheOrder(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC))
	for _, tt := range []struct {
		name   string
		change func(*tidekeeperv1.ScheduledRestart)
		want   bool
	}{
		{"nothing", func(*tidekeeperv1.ScheduledRestart) {}, false},
		{"label", func(r *tidekeeperv1.ScheduledRestart) { r.Labels = map[string]string{"a": "b"} }, false},
		{"annotation", func(r *tidekeeperv1.ScheduledRestart) { r.Annotations = map[string]string{"a": "b"} }, false},
		{"condition", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Message: "a"}}
		}, false},
		{"on a cycle", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Reason: tidekeeperv1.ReasonOrderCycle}}
		}, true},
		{"spec", func(r *tidekeeperv1.ScheduledRestart) { r.Generation++ }, true},
		{"deleted", func(r *tidekeeperv1.ScheduledRestart) { r.DeletionTimestamp = &noon }, true},
		{"another one of its name", func(r *tidekeeperv1.ScheduledRestart) { r.UID = "2" }, true},
		{"request", func(r *tidekeeperv1.ScheduledRestart) {
			r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "now"}
		}, true},
		{"request served", func(r *tidekeeperv1.ScheduledRestart) { r.Status.LastRequestTime = &noon }, true},
		{"spec seen", func(r *tidekeeperv1.ScheduledRestart) { r.Status.ObservedGeneration++ }, true},
		{"restarted", func(r *tidekeeperv1.ScheduledRestart) { r.Status.Active = &tidekeeperv1.ActiveRestart{} }, true},
		{"due", func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = &noon }, true},
		{"due in a window", func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextStartTime = &noon }, true},
		{"due for age", func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextAgeTime = &noon }, true},
		{"due for a change", func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextChangeTime = &noon }, true},
		{"change served", func(r *tidekeeperv1.ScheduledRestart) { r.Status.ConfigHash = "1" }, true},
		{"failed", func(r *tidekeeperv1.ScheduledRestart) { r.Status.ConsecutiveFailures++ }, true},
		{"ended", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.History = []tidekeeperv1.RestartRecord{{Outcome: tidekeeperv1.OutcomeFailed}}
		}, true},
	} {
		before := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hub", UID: "1"}}
		after := before.DeepCopy()
		tt.change(after)
		if got := changesOrder().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tt.want {
			t.Errorf("%s: those that come after are decided again: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// orderReader has ScheduledRestarts of which each comes after the next, and counts how often one
// is read, and copied.
type orderReader struct {
	client.Client
	reads, copies int
}

func (o *orderReader) Get(_ context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	o.reads++
	get := (&client.GetOptions{}).ApplyOptions(options)
	if get.UnsafeDisableDeepCopy == nil || !*get.UnsafeDisableDeepCopy {
		o.copies++
	}
	restart := object.(*tidekeeperv1.ScheduledRestart)
	restart.Namespace, restart.Name = key.Namespace, key.Name
	number := 0
	if _, err := fmt.Sscanf(key.Name, "r%d", &number); err != nil {
		return err
	}
	if number < 99 {
		restart.Spec.After = []string{fmt.Sprintf("r%d", number+1)}
	}
	return nil
}

// An order is read once for a decision, and without copies of what comes first.
func TestReadOrderCopiesNothing(t *testing.T) {
	reader := &orderReader{}
	r := &reconciler{client: reader}
	first := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r0"}}
	first.Spec.After = []string{"r1"}
	in := &decision.Input{Restart: first}
	if err := r.readOrder(t.Context(), in); err != nil || len(in.After) != 1 || len(in.Cycle) > 0 {
		t.Fatalf("it comes after %v, with the cycle %v, %v", in.After, in.Cycle, err)
	}
	if reader.reads != 99 || reader.copies != 0 {
		t.Errorf("%d reads with %d copies, want 99 without any", reader.reads, reader.copies)
	}
}
