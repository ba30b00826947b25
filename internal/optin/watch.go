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

// request identifies a workload to reconcile.
type request struct {
	kind *workload.Kind
	types.NamespacedName
}

// object returns an object with only the workload's kind, namespace and name.
func (r request) object() client.Object {
	o := r.kind.New()
	o.SetNamespace(r.Namespace)
	o.SetName(r.Name)
	return o
}

// workloadsOf returns a function that maps a workload of the given kind to the request for this
// workload.
func workloadsOf(kind *workload.Kind) handler.TypedMapFunc[client.Object, request] {
	return func(_ context.Context, o client.Object) []request {
		return []request{{kind: kind, NamespacedName: client.ObjectKeyFromObject(o)}}
	}
}

// workloadsOfRestart maps a ScheduledRestart to the workloads whose opt-in may have created it or
// may need its name: the target of the ScheduledRestart, its owner, and the workloads of any kind
// for which [namesFor] may return its name.
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

// workloadChanges is a predicate that accepts workloads with opt-in annotations, and changes to
// these annotations. Workloads that opted out while no manager was running are found through their
// ScheduledRestarts. Deletions need no action, because the garbage collector handles them.
var workloadChanges = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return len(optInOf(e.Object)) > 0 },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(optInOf(e.ObjectOld), optInOf(e.ObjectNew)) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// optInOf returns the opt-in annotations of a workload.
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

// restartChanges is a predicate that accepts changes to any field that the opt-in writes, for
// ScheduledRestarts created by an opt-in. For other ScheduledRestarts, it accepts only deletions,
// which free a name, and changes to the target, because a ScheduledRestart that targets a workload
// blocks the workload's opt-in.
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
