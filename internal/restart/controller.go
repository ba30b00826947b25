// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// reconciler carries out what [decide] says about one ScheduledRestart.
type reconciler struct {
	client client.Client
	// live reads past the cache.
	live client.Reader
	// cache is read past the client where a kind may not be in it: the client
	// would start to watch it.
	cache    client.Reader
	recorder events.EventRecorder
	budget   *budget
	alarm    *alarm
	metrics  *metrics
	clock    clock.PassiveClock

	mu sync.Mutex
	// rebuilt: the budget knows what was under way before this process.
	rebuilt bool
	// sent is the tick that this process has sent last, for each restart that
	// is under way.
	sent map[types.NamespacedName]sentTick
	// told is the wrong request that an event was sent about.
	told map[types.NamespacedName]string
}

type sentTick struct {
	uid  types.UID
	tick time.Time
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	if err := r.rebuildBudget(ctx); err != nil {
		return ctrl.Result{}, err
	}
	restart := &tidekeeperv1.ScheduledRestart{}
	if err := r.client.Get(ctx, key, restart); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(key)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !restart.DeletionTimestamp.IsZero() {
		// The rollout of a restart that is under way is left alone.
		r.forget(key)
		return ctrl.Result{}, nil
	}
	r.tellWrongRequest(key, restart)

	d, target, err := r.decide(ctx, key, restart)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.carryOut(ctx, key, restart, target, &d)
	if err != nil {
		if !apierrors.IsConflict(err) && ctx.Err() == nil {
			r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, EventReconcileFailed, "Reconcile", "%s", err)
		}
		return ctrl.Result{}, err
	}
	r.alarm.set(key, d.wake)
	return ctrl.Result{}, nil
}

// decide gathers what a decision rests on, and decides.
func (r *reconciler) decide(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (decision, client.Object, error) {
	in := inputs{
		restart: restart,
		offset:  schedule.Spread(string(restart.UID), seconds(restart.Spec.SpreadSeconds)),
		slot:    restart.Status.Active != nil,
		sent:    r.sentFor(key, restart.UID),
		now:     r.clock.Now().Round(0),
	}
	in.ticks, in.invalid = schedule.Parse(restart.Spec.Schedule, restart.Spec.TimeZone)
	workload, err := r.workload(ctx, r.client, restart)
	if err != nil {
		return decision{}, nil, err
	}
	if workload != nil {
		in.target = targetOf(workload)
	}

	d := decide(in)
	if d.wantsLive {
		if workload, err = r.workload(ctx, r.live, restart); err != nil {
			return decision{}, nil, err
		}
		if in.live, in.target = true, nil; workload != nil {
			in.target = targetOf(workload)
		}
		d = decide(in)
	}
	if d.wantsStartups {
		if in.startups, err = r.startupsOf(ctx, restart.Namespace, in.target); err != nil {
			return decision{}, nil, err
		}
		d = decide(in)
	}
	if d.wantsSlot && r.budget.take(key, d.due) {
		in.slot = true
		d = decide(in)
	}
	return d, workload, nil
}

// workload reads the target, nil if there is none.
func (r *reconciler) workload(ctx context.Context, from client.Reader, restart *tidekeeperv1.ScheduledRestart) (client.Object, error) {
	ref := restart.Spec.TargetRef
	workload := NewWorkload(ref.Kind)
	err := from.Get(ctx, client.ObjectKey{Namespace: restart.Namespace, Name: ref.Name}, workload)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", ref.Kind, ref.Name, err)
	}
	return workload, nil
}

// carryOut does what was decided, in the order that makes a crash harmless:
// first the status says that a tick is started, then it is sent.
func (r *reconciler) carryOut(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, workload client.Object, d *decision) error {
	if !equality.Semantic.DeepEqual(&restart.Status, &d.status) {
		before := restart.DeepCopy()
		restart.Status = d.status
		// Under the resourceVersion: of two leaders, one starts a tick.
		if err := r.client.Status().Patch(ctx, restart, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("write status: %w", err)
		}
	}
	r.metrics.schedules.set(key, meta.FindStatusCondition(d.status.Conditions, ConditionReady).Reason)
	for i := range d.records {
		r.tell(restart, &d.records[i])
	}
	if !d.send.IsZero() {
		if err := r.send(ctx, restart, workload, d.send); err != nil {
			return err
		}
		r.remember(key, restart.UID, d.send)
		due := d.send
		if restart.Status.Active.Trigger == tidekeeperv1.TriggerSchedule {
			due = due.Add(schedule.Spread(string(restart.UID), seconds(restart.Spec.SpreadSeconds)))
		}
		r.metrics.lateness.Observe(max(0, r.clock.Since(due).Seconds()))
	}
	if d.status.Active == nil && !d.wantsSlot {
		r.alarm.ring(r.budget.release(key)...)
	}
	return nil
}

// send writes the tick into the pod template. The patch is valid only for the
// workload as it was when that was decided: what has changed since may be
// broken, paused, or another one of the same name.
func (r *reconciler) send(ctx context.Context, restart *tidekeeperv1.ScheduledRestart, workload client.Object, tick time.Time) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": workload.GetUID(), "resourceVersion": workload.GetResourceVersion(),
			"annotations": map[string]any{tidekeeperv1.LastTickAnnotation: clockTime(tick)},
		},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			tidekeeperv1.RestartedAtAnnotation: clockTime(tick),
		}}}},
	})
	if err != nil {
		return fmt.Errorf("the patch of the template: %w", err)
	}
	ref := restart.Spec.TargetRef
	ctrl.LoggerFrom(ctx).V(1).Info("Restarting", "kind", ref.Kind, "target", ref.Name, "tick", clockTime(tick))
	if err := r.client.Patch(ctx, workload, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("patch the template of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

// tell counts a tick that was decided, and makes an event of it.
func (r *reconciler) tell(restart *tidekeeperv1.ScheduledRestart, record *tidekeeperv1.RestartRecord) {
	ref := restart.Spec.TargetRef
	r.metrics.ticks.WithLabelValues(string(record.Outcome), record.Reason).Add(float64(1 + record.EarlierTicks))
	if record.StartedTime != nil {
		r.metrics.duration.WithLabelValues(ref.Kind, string(record.Outcome)).Observe(record.CompletedTime.Sub(record.StartedTime.Time).Seconds())
	}
	eventType, reason, note := announce(ref, record)
	r.recorder.Eventf(restart, nil, eventType, reason, "Restart", "%s", note)
}

// announce words the event of a tick that was decided.
func announce(ref tidekeeperv1.TargetRef, record *tidekeeperv1.RestartRecord) (eventType, reason, note string) {
	tick := clockTime(record.ScheduledTime.Time)
	if record.EarlierTicks > 0 {
		tick = fmt.Sprintf("%s and %d ticks before it", tick, record.EarlierTicks)
	}
	switch record.Outcome {
	case tidekeeperv1.OutcomeSucceeded:
		note = fmt.Sprintf("restarted %s %s, %d pods in %s (tick %s)", ref.Kind, ref.Name, record.Pods,
			record.CompletedTime.Sub(record.StartedTime.Time).Round(time.Second), tick)
		if s := record.PodStartup; s != nil {
			note += fmt.Sprintf("; new pods were ready in %s, at worst %s",
				withChange(s.MedianSeconds, s.MedianChangeSeconds), withChange(s.MaxSeconds, s.MaxChangeSeconds))
		}
		if record.Message != "" {
			note += "; " + record.Message
		}
		return corev1.EventTypeNormal, EventSucceeded, note
	case tidekeeperv1.OutcomeSkipped:
		eventType, reason = corev1.EventTypeNormal, EventSkipped
	case tidekeeperv1.OutcomeMissed:
		eventType, reason = corev1.EventTypeWarning, EventMissed
	default:
		eventType, reason = corev1.EventTypeWarning, EventFailed
	}
	return eventType, reason, fmt.Sprintf("%s: %s (tick %s)", record.Reason, record.Message, tick)
}

// withChange words a length of time, and how much longer it was than before.
func withChange(length int32, change *int32) string {
	if change == nil {
		return seconds(length).String()
	}
	return fmt.Sprintf("%s (%+ds)", seconds(length), *change)
}

// tellWrongRequest makes one event of an annotation that asks for a restart in
// words that cannot be understood.
func (r *reconciler) tellWrongRequest(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) {
	_, err := requestedTime(restart)
	value := restart.Annotations[tidekeeperv1.RestartNowAnnotation]
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		delete(r.told, key)
	case r.told[key] != value:
		r.told[key] = value
		r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, EventInvalidRequest, "Restart", "%s", err)
	}
}

// rebuildBudget fills the budget, once, with what is under way already: else a
// new leader could start more beside it.
func (r *reconciler) rebuildBudget(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rebuilt {
		return nil
	}
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the restarts that are under way: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Status.Active != nil {
			r.budget.hold(client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	r.rebuilt = true
	return nil
}

// forget drops all that is kept of a ScheduledRestart that is gone.
func (r *reconciler) forget(key types.NamespacedName) {
	r.alarm.set(key, time.Time{})
	r.metrics.schedules.set(key, "")
	r.mu.Lock()
	delete(r.sent, key)
	delete(r.told, key)
	r.mu.Unlock()
	r.alarm.ring(r.budget.release(key)...)
}

func (r *reconciler) remember(key types.NamespacedName, uid types.UID, tick time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[key] = sentTick{uid, tick}
}

func (r *reconciler) sentFor(key types.NamespacedName, uid types.UID) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent, ok := r.sent[key]; ok && sent.uid == uid {
		return sent.tick
	}
	return time.Time{}
}
