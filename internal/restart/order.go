// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/order"
)

// readOrder sets the predecessors of the ScheduledRestart (spec.after) and the cycle that contains
// it in the input. It looks up the cycle in the graph.
func (g *gatherer) readOrder(ctx context.Context, in *decision.Input) error {
	if len(in.Restart.Spec.After) == 0 {
		return nil
	}
	in.Cycle = g.order.Cycle(client.ObjectKeyFromObject(in.Restart))
	err := in.ReadAfter(func(name string) (*tidekeeperv1.ScheduledRestart, error) {
		other := &tidekeeperv1.ScheduledRestart{}
		// No deep copy is needed, because the objects are not modified.
		err := g.client.Get(ctx, client.ObjectKey{Namespace: in.Restart.Namespace, Name: name}, other, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && !other.DeletionTimestamp.IsZero() {
			return nil, nil
		}
		return other, err
	})
	if err != nil {
		return err
	}
	return g.readChanges(ctx, in)
}

// changesOrder returns a predicate for updates of a ScheduledRestart. It passes only updates that
// can affect the followers, the ScheduledRestarts that name this one in spec.after. These are
// deletions, and changes of the spec, the status, the restart request, and the reason of the
// condition Ready. The reason changes when a cycle of spec.after begins or ends, and the decisions
// about the other members of the cycle must then be repeated. Other edits, for example of a label,
// must not enqueue all followers, since a client could keep the workers busy with such edits.
func changesOrder() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*tidekeeperv1.ScheduledRestart)
		after, also := e.ObjectNew.(*tidekeeperv1.ScheduledRestart)
		if !ok || !also {
			return true
		}
		was, is := before.Status, after.Status
		was.Conditions, is.Conditions = nil, nil
		return index.ReadyReason(before) != index.ReadyReason(after) || before.UID != after.UID || before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Annotations[tidekeeperv1.RestartNowAnnotation] != after.Annotations[tidekeeperv1.RestartNowAnnotation] ||
			!equality.Semantic.DeepEqual(was, is)
	}}
}

// follow returns a handler that enqueues a ScheduledRestart for each of its events. For events that
// can affect its followers (the ScheduledRestarts that name it in spec.after), it also enqueues
// these. The handler updates the graph before it adds the requests, so that the decisions take the
// event into account.
func follow(graph *order.Graph) handler.Funcs {
	matters := changesOrder()
	set := func(object client.Object) {
		if restart, ok := object.(*tidekeeperv1.ScheduledRestart); ok && restart.DeletionTimestamp.IsZero() {
			graph.Set(client.ObjectKeyFromObject(object), restart.Spec.After)
			return
		}
		graph.Set(client.ObjectKeyFromObject(object), nil)
	}
	add := func(q queue, object client.Object, followers bool) {
		key := client.ObjectKeyFromObject(object)
		q.Add(reconcile.Request{NamespacedName: key})
		if !followers {
			return
		}
		for _, name := range graph.Followers(key) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			set(e.Object)
			add(q, e.Object, true)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			set(e.ObjectNew)
			add(q, e.ObjectNew, matters.Update(e))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			graph.Set(client.ObjectKeyFromObject(e.Object), nil)
			add(q, e.Object, true)
		},
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
