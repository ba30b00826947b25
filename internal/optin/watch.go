// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// request is a workload to reconcile.
type request struct {
	kind *workload.Kind
	types.NamespacedName
}

// object returns an object with the kind and the name of the workload.
func (r request) object() client.Object {
	o := r.kind.New()
	o.SetNamespace(r.Namespace)
	o.SetName(r.Name)
	return o
}

// workloadsOf maps a workload to itself.
func workloadsOf(kind *workload.Kind) handler.TypedMapFunc[client.Object, request] {
	return func(_ context.Context, o client.Object) []request {
		return []request{{kind: kind, NamespacedName: client.ObjectKeyFromObject(o)}}
	}
}

// workloadsOfRestart maps a ScheduledRestart to the workloads that may have created it or may
// want its name: for each kind the workloads derived from the name, the target, and the owner.
func workloadsOfRestart(_ context.Context, o client.Object) []request {
	var requests []request
	add := func(kind *workload.Kind, name string) {
		r := request{kind: kind, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}
		if name != "" && !slices.Contains(requests, r) {
			requests = append(requests, r)
		}
	}
	for _, kind := range workload.Kinds {
		for _, name := range workloadNames(kind, o.GetName()) {
			add(kind, name)
		}
	}
	if s, ok := o.(*tidekeeperv1.ScheduledRestart); ok {
		if kind, err := workload.Get(s.Spec.TargetRef); err == nil {
			add(kind, s.Spec.TargetRef.Name)
		}
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		if kind, err := workload.Find(owner.APIVersion, owner.Kind); err == nil {
			add(kind, owner.Name)
		}
	}
	return requests
}

// workloadChanges accepts workloads that opt in, and changes of the opt-in's annotations. A
// workload that opted out while no manager was running is found through its ScheduledRestart.
// Deletions are left to the garbage collector.
var workloadChanges = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return len(optInOf(e.Object)) > 0 },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(optInOf(e.ObjectOld), optInOf(e.ObjectNew)) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// optInOf returns the annotations of a workload that belong to the opt-in.
func optInOf(o client.Object) map[string]string {
	all := o.GetAnnotations()
	of := map[string]string{}
	for _, key := range []string{
		tidekeeperv1.OptInAnnotation, tidekeeperv1.OptInScheduleAnnotation, tidekeeperv1.OptInTimeZoneAnnotation, tidekeeperv1.OptInMaxPodAgeAnnotation,
	} {
		if value, ok := all[key]; ok {
			of[key] = value
		}
	}
	return of
}

// restartChanges accepts changes of any field that the opt-in wrote, for ScheduledRestarts that
// opt-ins created. For other ScheduledRestarts, it accepts only a deletion, which frees the
// name, and a new target, because a ScheduledRestart for the same workload blocks the opt-in.
var restartChanges = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return isMade(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		return !targetOf(was).Equal(targetOf(is)) || (isMade(was) || isMade(is)) &&
			(was.GetGeneration() != is.GetGeneration() ||
				was.GetUID() != is.GetUID() ||
				was.GetAnnotations()[tidekeeperv1.AppliedAnnotation] != is.GetAnnotations()[tidekeeperv1.AppliedAnnotation] ||
				!equality.Semantic.DeepEqual(was.GetOwnerReferences(), is.GetOwnerReferences()))
	},
}

func targetOf(o client.Object) tidekeeperv1.TargetRef {
	if s, ok := o.(*tidekeeperv1.ScheduledRestart); ok {
		return s.Spec.TargetRef
	}
	return tidekeeperv1.TargetRef{}
}

func isMade(o client.Object) bool {
	_, made := o.GetAnnotations()[tidekeeperv1.AppliedAnnotation]
	return made
}
