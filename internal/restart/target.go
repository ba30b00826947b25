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

// target is a workload that is to be restarted, or is being restarted.
type target struct {
	kind *workload.Kind
	// object is nil if the workload does not exist.
	object client.Object
	// unserved is set if the cluster does not serve the kind.
	unserved bool
}

// targets reads the workloads that are restarted.
type targets struct {
	// client reads from the cache, and apiReader from the API server.
	client, apiReader client.Reader
	// cache is used for kinds that may have no informer: the client would start one.
	cache client.Reader
	// pods reads pods from the cache.
	pods   *podcache.Workloads
	scales *scale.Reader
}

// read reads the target, and sets its state in the input.
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

// readRolledOut finds out whether a rollout for the tick has ever begun, and then reads the target again: a
// manager that has just lost the lease may have sent the tick after the first read, so only a later read
// without the tick proves that the rollout was undone. The second read also avoids conflicts with clients
// that write to the target often, as the list can take a tenth of a second.
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

// wasRolledOut reports whether a rollout for the tick has ever begun. kubectl rollout undo
// reverts the annotations of a Deployment together with its pod template, but leaves the
// ReplicaSet of the undone rollout. For other kinds it leaves the annotations.
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
