// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/order"
)

// TestWhatChangesTheOrder checks that the followers of a ScheduledRestart are enqueued only for
// changes that their decisions depend on.
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

// orderReader is a client for a chain of 100 ScheduledRestarts, each of which has the next as its
// predecessor. It counts reads and deep copies.
type orderReader struct {
	client.Client
	reads, copies int
	// around closes the chain to a cycle: the last ScheduledRestart has the first as its
	// predecessor.
	around bool
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
	if number < 99 || o.around {
		restart.Spec.After = []string{fmt.Sprintf("r%d", (number+1)%100)}
	}
	return nil
}

// restart returns the ScheduledRestart with the given name without counting the read.
func (o *orderReader) restart(t *testing.T, name string) *tidekeeperv1.ScheduledRestart {
	t.Helper()
	restart, uncounted := &tidekeeperv1.ScheduledRestart{}, &orderReader{around: o.around}
	if err := uncounted.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, restart); err != nil {
		t.Fatal(err)
	}
	return restart
}

// TestReadsOfAnOrder checks that a decision reads only the direct predecessors and makes no deep
// copies, regardless of the length of the chain and of cycles.
func TestReadsOfAnOrder(t *testing.T) {
	for _, around := range []bool{false, true} {
		reader, graph := &orderReader{around: around}, &order.Graph{}
		on, queued := follow(graph), &queuedRequests{}
		for i := range 100 {
			on.Create(t.Context(), event.CreateEvent{Object: reader.restart(t, fmt.Sprintf("r%d", i))}, queued)
		}
		g := &gatherer{client: reader, order: graph}
		for i := range 99 {
			in := &decision.Input{Restart: reader.restart(t, fmt.Sprintf("r%d", i))}
			if err := g.readOrder(t.Context(), in); err != nil || len(in.After) != 1 || (len(in.Cycle) == 101) != around || (len(in.Cycle) == 0) == around {
				t.Fatalf("it comes after %v, with a cycle of %d, %v", in.After, len(in.Cycle), err)
			}
		}
		if reader.reads != 99 || reader.copies != 0 {
			t.Errorf("%d reads with %d copies for 99 decisions, want 99 without any", reader.reads, reader.copies)
		}
	}
}

// queuedRequests is a work queue that records the requests that are added to it.
type queuedRequests struct {
	queue
	names []string
}

func (q *queuedRequests) Add(r reconcile.Request) { q.names = append(q.names, r.Name) }

// TestWhoFollows checks that an event enqueues its ScheduledRestart, and also enqueues the
// followers if their order may have changed. Neither must require a read.
func TestWhoFollows(t *testing.T) {
	graph := &order.Graph{}
	on := follow(graph)
	restart := func(name string, generation int64, after ...string) *tidekeeperv1.ScheduledRestart {
		r := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: generation}}
		r.Spec.After = after
		return r
	}
	deleting := restart("app", 3, "db", "cache")
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	create := func(r *tidekeeperv1.ScheduledRestart) func(queue) {
		return func(q queue) { on.Create(t.Context(), event.CreateEvent{Object: r}, q) }
	}
	update := func(before, after *tidekeeperv1.ScheduledRestart) func(queue) {
		return func(q queue) { on.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q) }
	}
	for _, step := range []struct {
		name  string
		event func(queue)
		want  string
	}{
		{"app is created", create(restart("app", 1, "db")), "app"},
		{"db is created", create(restart("db", 1)), "db app"},
		{"db gets a label", update(restart("db", 1), restart("db", 1)), "db"},
		{"db is edited", update(restart("db", 1), restart("db", 2)), "db app"},
		{"cache is created", create(restart("cache", 1)), "cache"},
		{"app comes after cache as well", update(restart("app", 1, "db"), restart("app", 2, "db", "cache")), "app"},
		{"cache is edited", update(restart("cache", 1), restart("cache", 2)), "cache app"},
		{"app is being deleted", update(restart("app", 2, "db", "cache"), deleting), "app"},
		{"db is edited again", update(restart("db", 2), restart("db", 3)), "db"},
		{"app is created again", create(restart("app", 1, "db")), "app"},
		{"db is deleted", func(q queue) { on.Delete(t.Context(), event.DeleteEvent{Object: restart("db", 3)}, q) }, "db app"},
		{"app is deleted", func(q queue) { on.Delete(t.Context(), event.DeleteEvent{Object: restart("app", 1, "db")}, q) }, "app"},
		{"db is created again", create(restart("db", 1)), "db"},
	} {
		q := &queuedRequests{}
		step.event(q)
		if got := strings.Join(q.names, " "); got != step.want {
			t.Errorf("%s: %s are reconciled, want %s", step.name, got, step.want)
		}
	}
}
