// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// target is a workload that is to be restarted, or is being restarted.
type target struct {
	kind *workload.Kind
	// object is nil if it does not exist.
	object client.Object
	// unserved says that the cluster does not serve its kind.
	unserved bool
}

// decide reads what a decision depends on, and decides. It also returns the target of the
// decision.
func (r *reconciler) decide(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (decision.Output, *target, error) {
	in := decision.Input{
		Restart:       restart,
		SlotAge:       r.slotAge,
		ChangeSettle:  r.changeSettle,
		FreezesShared: freeze.SharedFor, FreezeConfirmed: freeze.ConfirmedFor,
		Sent:         r.lastSent(key, restart.UID),
		LeadingSince: r.leader(),
		Now:          r.clock.Now().Round(0),
	}
	in.Offset = decision.Offset(restart, in.Now)
	in.ClaimAhead = r.claims.ahead(key)
	in.BeforeClaim = r.claims.before(key, restart)
	in.Attempts = r.evictions.of(key, restart)
	in.Refused = r.refusals.ofSend(key, restart)
	in.Ticks, in.Windows, in.Invalid = decision.ParseSchedule(&restart.Spec)
	t, err := r.readTarget(ctx, r.client, restart, &in)
	if err != nil {
		return decision.Output{}, nil, err
	}
	if in.Freezes, err = r.freezes.In(ctx, restart.Namespace); err != nil {
		return decision.Output{}, nil, err
	}
	if err := r.readOrder(ctx, &in); err != nil {
		return decision.Output{}, nil, err
	}
	if err := r.readConfig(ctx, &in, false); err != nil {
		return decision.Output{}, nil, err
	}
	workload := decision.TargetRef(restart.Status.Active, &restart.Spec).Name
	in.Queried, in.Answer = r.queries != nil, r.queries.Answer(key, workload)
	for {
		d := decision.Decide(in)
		switch d.Needs {
		case decision.NeedLiveTarget:
			in.Live = true
			if t, err = r.readTarget(ctx, r.apiReader, restart, &in); err == nil {
				err = r.readConfig(ctx, &in, false)
			}
		case decision.NeedRolledOut:
			t, err = r.readRolledOut(ctx, restart, t, &in)
		case decision.NeedPodStartups:
			in.PodStartups = r.podStartups(ctx, restart.Namespace, t.kind, in.Target)
		case decision.NeedPodAges:
			in.PodAges, err = r.podAges(restart.Namespace, in.Target)
		case decision.NeedLivePodAges:
			in.PodAges, err = r.livePodAges(ctx, restart.Namespace, in.Target)
		case decision.NeedPods:
			in.Pods, err = r.lookAtPods(ctx, key, restart, in.Target)
		case decision.NeedLiveConfig:
			err = r.readConfig(ctx, &in, true)
		case decision.NeedSlot:
			in.HasSlot = r.budget.Take(key, d.WaitingSince)
		case decision.NeedSpareSlot:
			in.HasSlot = r.budget.Spare(key)
		case decision.NeedLiveFreezes:
			in.FreezesLive = true
			in.Freezes, err = r.freezes.LiveIn(ctx, restart.Namespace, d.Due)
		}
		if err != nil {
			return decision.Output{}, nil, err
		}
		if d.Needs == decision.NeedAnswer {
			r.queries.Ask(ctx, key, workload)
			return d, t, nil
		}
		withoutSlot := !in.HasSlot && (d.Needs == decision.NeedSlot || d.Needs == decision.NeedSpareSlot)
		if d.Needs == decision.NeedNothing || withoutSlot {
			r.metrics.overdue.observe(key, restart, &d.Status, &in)
			r.metrics.storms.observe(key, restart, &d.Status, &in)
			return d, t, nil
		}
	}
}

// readTarget reads the target, and puts its state into the input.
func (r *reconciler) readTarget(ctx context.Context, from client.Reader, restart *tidekeeperv1.ScheduledRestart, in *decision.Input) (*target, error) {
	in.Target, in.Unserved, in.Unreadable, in.Polled = nil, false, "", false
	ref := decision.TargetRef(restart.Status.Active, &restart.Spec)
	kind, err := workload.Get(ref)
	if err != nil && decision.Evicts(restart) {
		return &target{}, r.scales.Read(ctx, restart.Namespace, ref, in)
	}
	if err != nil {
		return nil, err
	}
	t := &target{kind: kind}
	object := kind.New()
	err = from.Get(ctx, client.ObjectKey{Namespace: restart.Namespace, Name: ref.Name}, object)
	switch {
	case meta.IsNoMatchError(err):
		t.unserved, in.Unserved = true, true
		return t, nil
	case apierrors.IsNotFound(err):
		return t, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", ref.Kind, ref.Name, err)
	}
	t.object = object
	if in.Target, err = kind.State(object); err != nil {
		return nil, err
	}
	return t, r.excludeNodes(ctx, t, in.Target, restart.Status.Active)
}

// readRolledOut reads whether a rollout for the tick has ever begun, and then the target again:
// a manager that has just lost the lease may have sent the tick after the target was read, and
// only a target without it that was read later shows that the rollout was undone. Also, the list
// can take a tenth of a second, in which a client that writes to the target often would have
// changed it every time.
func (r *reconciler) readRolledOut(ctx context.Context, restart *tidekeeperv1.ScheduledRestart, t *target, in *decision.Input) (*target, error) {
	if !t.kind.UndoHidesRestart {
		in.RolledOut = new(false)
		return t, nil
	}
	var err error
	if in.RolledOut, err = r.wasRolledOut(ctx, t, in.Target, restart.Status.Active.ScheduledTime.Time); err != nil {
		return t, err
	}
	return r.readTarget(ctx, r.apiReader, restart, in)
}

// wasRolledOut reports whether a rollout for the tick has ever begun. kubectl rollout undo
// reverts the annotations of a Deployment together with its pod template, but leaves the
// ReplicaSet of the undone rollout. For other kinds it leaves the annotations.
func (r *reconciler) wasRolledOut(ctx context.Context, t *target, state *workload.State, tick time.Time) (*bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(state.Selector)
	if err != nil {
		return nil, fmt.Errorf("parse the selector of %s: %w", state, err)
	}
	list := &appsv1.ReplicaSetList{}
	if err := r.apiReader.List(ctx, list, client.InNamespace(t.object.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the revisions of %s: %w", state, err)
	}
	for i := range list.Items {
		set := &list.Items[i]
		if metav1.IsControlledBy(set, t.object) && set.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation] == workload.FormatTime(tick) {
			return new(true), nil
		}
	}
	return new(false), nil
}
