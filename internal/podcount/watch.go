// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// settle is how long a count waits for more pods to come and go, so that a
// ReplicaSet that is scaled by a hundred is not written a hundred times.
const settle = 100 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// podEvents queues the ReplicaSets whose count may be another because of a pod.
var podEvents = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, countedBy(e.Object)) },
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, countedBy(e.Object)) },
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		// Most changes of a pod are none of its ReplicaSet's count.
		if was, is := countedBy(e.ObjectOld), countedBy(e.ObjectNew); was != is {
			add(q, was)
			add(q, is)
		}
	},
}

// counter is a ReplicaSet that counts a pod; the zero value: none does.
type counter struct {
	types.NamespacedName
	uid types.UID
}

// countedBy returns the ReplicaSet whose count has the pod in it.
func countedBy(o any) counter {
	pod, ok := o.(*corev1.Pod)
	if !ok || !counts(pod) {
		return counter{}
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return counter{}
	}
	return counter{types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, owner.UID}
}

func add(q queue, c counter) {
	if c != (counter{}) {
		q.AddAfter(ctrl.Request{NamespacedName: c.NamespacedName}, settle)
	}
}

// replicaSetChanges lets through new ReplicaSets, and changes of the label by
// whomever. How the rest of them changes is no matter.
var replicaSetChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, had := e.ObjectOld.GetLabels()[Label]
		is, has := e.ObjectNew.GetLabels()[Label]
		return had != has || was != is || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}
