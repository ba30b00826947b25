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
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/scale"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// target is the workload that a ScheduledRestart restarts.
type target struct {
	kind *workload.Kind
	// object is the workload that was read; nil if it does not exist.
	object client.Object
	// unserved is true if the API server does not serve the workload's kind.
	unserved bool
}

// targets reads the workloads that ScheduledRestarts restart.
type targets struct {
	// client reads from the cache; apiReader reads from the API server.
	client, apiReader client.Reader
	// cache is used for kinds that the manager may not watch. It returns an error for a kind that
	// is not watched.
	cache client.Reader
	// pods provides compact records of pods from the cache.
	pods   *podcache.Workloads
	scales *scale.Reader
}

// read reads the target with the given reader, and sets its state in the input.
func (r *targets) read(ctx context.Context, from client.Reader, restart *tidekeeperv1.ScheduledRestart, in *decision.Input) (*target, error) {
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

// readRolledOut determines whether a rollout for the tick (the scheduled time of the restart) has
// ever begun, and then reads the target again. A manager that has just lost the lease may have sent
// the tick after the target was first read. The rollout therefore counts as undone only if the
// second read does not show the tick either. As listing the revisions can take a tenth of a second,
// the second read also avoids conflicts with clients that often write to the target.
func (r *targets) readRolledOut(ctx context.Context, restart *tidekeeperv1.ScheduledRestart, t *target, in *decision.Input) (*target, error) {
	if !t.kind.UndoHidesRestart {
		in.RolledOut = new(false)
		return t, nil
	}
	var err error
	if in.RolledOut, err = r.wasRolledOut(ctx, t, in.Target, restart.Status.Active.ScheduledTime.Time); err != nil {
		return t, err
	}
	return r.read(ctx, r.apiReader, restart, in)
}

// wasRolledOut reports whether a rollout for the tick (the scheduled time of the restart) has ever
// begun. For a Deployment, kubectl rollout undo reverts the annotations together with the pod
// template, but leaves the ReplicaSet of the undone rollout. For other kinds, kubectl rollout undo
// leaves the annotations.
func (r *targets) wasRolledOut(ctx context.Context, t *target, state *workload.State, tick time.Time) (*bool, error) {
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
