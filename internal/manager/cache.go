// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	resourcehelper "k8s.io/component-helpers/resource"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/podcache"
	"tidekeeper.dev/tidekeeper/internal/podstartup"
)

// cacheOptions says what the shared cache keeps. It holds every pod of the
// cluster, so what it keeps of a pod decides how much memory the manager
// needs. A controller that reads a field that is thrown away here reads zero:
// add the field, and the test beside this file if it must stay.
//
// What only controllers limited to namespaces watch is kept of these only.
func cacheOptions(chosen []controller, namespaces []string) cache.Options {
	options := cache.Options{
		// A read of a kind that no chosen controller watches is a bug. Without
		// this it would silently list and watch that kind from then on. The
		// client asks for the informer itself, for which there is [closedCache].
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            transformAny,
		// Of pods there are many.
		NewInformer: podcache.NewInformer,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:         {Transform: transformPod},
			&corev1.Node{}:        {Transform: transformNode},
			&appsv1.Deployment{}:  {Transform: transformWorkload},
			&appsv1.StatefulSet{}: {Transform: transformWorkload},
			&appsv1.DaemonSet{}:   {Transform: transformWorkload},
			&appsv1.ReplicaSet{}:  {Transform: transformWorkload},
			// As all others.
			&tidekeeperv1.ScheduledRestart{}: {},
		},
	}
	if len(namespaces) == 0 {
		return options
	}
	in := map[string]cache.Config{}
	for _, namespace := range namespaces {
		in[namespace] = cache.Config{}
	}
	for kind, of := range options.ByObject {
		if _, inNone := kind.(*corev1.Node); !inNone && isLimited(kind, chosen) {
			of.Namespaces = in
			options.ByObject[kind] = of
		}
	}
	return options
}

// newClosedCache returns what makes a cache of the kinds that the controllers watch
// and no others.
func newClosedCache(chosen []controller) cache.NewCacheFunc {
	return func(cfg *rest.Config, options cache.Options) (cache.Cache, error) {
		inner, err := cache.New(cfg, options)
		if err != nil {
			return nil, fmt.Errorf("making the cache: %w", err)
		}
		closed := &closedCache{Cache: inner, scheme: options.Scheme, kinds: sets.New[schema.GroupVersionKind]()}
		for _, kind := range kindsOf(chosen) {
			gvk, err := apiutil.GVKForObject(kind, options.Scheme)
			if err != nil {
				return nil, fmt.Errorf("%T: %w", kind, err)
			}
			closed.kinds.Insert(gvk)
		}
		return closed, nil
	}
}

// closedCache starts no informer but of its kinds. ReaderFailOnMissingInformer
// says so for reads of the cache only: a client that reads its own writes first
// asks for the informer of what it reads or writes, which starts it.
type closedCache struct {
	cache.Cache
	scheme *runtime.Scheme
	kinds  sets.Set[schema.GroupVersionKind]
}

// GetInformer returns the informer of a kind that a controller watches, and the
// error cache.ErrResourceNotCached for any other.
func (c *closedCache) GetInformer(ctx context.Context, object client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", object, err)
	}
	if !c.kinds.Has(gvk) {
		return nil, &cache.ErrResourceNotCached{GVK: gvk}
	}
	return c.Cache.GetInformer(ctx, object, opts...)
}

// transformAny drops who set which field, which nothing here asks.
func transformAny(in any) (any, error) {
	object, err := meta.Accessor(in)
	if err != nil {
		return nil, fmt.Errorf("an object without metadata in the cache: %w", err)
	}
	object.SetManagedFields(nil)
	return in, nil
}

// transformNode keeps of a node what pools ask of it: its labels, annotations and
// taints, what it has, and whether it is ready.
func transformNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of nodes", in)
	}
	slim := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:              node.Name,
			UID:               node.UID,
			ResourceVersion:   node.ResourceVersion,
			DeletionTimestamp: node.DeletionTimestamp,
			Labels:            node.Labels,
			Annotations:       node.Annotations,
		},
		Spec:   corev1.NodeSpec{Taints: node.Spec.Taints},
		Status: corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return slim, nil
}

// transformWorkload drops from a Deployment, StatefulSet, DaemonSet or ReplicaSet
// what its pods run, and the copy of the whole that kubectl apply keeps beside it. What
// is left is how many pods there are to be, how they are rolled out, and what
// has become of that. An update of the whole object would lose the rest, so
// these kinds are only ever patched.
func transformWorkload(in any) (any, error) {
	switch o := in.(type) {
	case *appsv1.Deployment:
		o.Spec.Template.Spec = corev1.PodSpec{}
	case *appsv1.StatefulSet:
		o.Spec.Template.Spec = corev1.PodSpec{}
		o.Spec.VolumeClaimTemplates = nil
	case *appsv1.DaemonSet:
		o.Spec.Template.Spec = corev1.PodSpec{}
	case *appsv1.ReplicaSet:
		o.Spec.Template.Spec = corev1.PodSpec{}
	default:
		return nil, fmt.Errorf("%T in the cache of workloads", in)
	}
	object := in.(metav1.Object)
	object.SetManagedFields(nil)
	delete(object.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	return in, nil
}

// transformPod keeps of a pod what says where it is, what it tolerates, who
// controls it, what it requests, and in sum how it came up. PodRequests of
// k8s.io/component-helpers, with whatever options, answers the same for the
// result as for the whole pod.
func transformPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of pods", in)
	}
	// A new object instead of changes in place, so that a field of a later
	// API version is thrown away too.
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			OwnerReferences:   slimOwners(pod.OwnerReferences),
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Tolerations:    pod.Spec.Tolerations,
			Containers:     slimContainers(pod.Spec.Containers),
			InitContainers: slimContainers(pod.Spec.InitContainers),
			Overhead:       pod.Spec.Overhead,
		},
		Status: corev1.PodStatus{
			Phase:                                pod.Status.Phase,
			AllocatedResources:                   pod.Status.AllocatedResources,
			NodeAllocatableResourceClaimStatuses: pod.Status.NodeAllocatableResourceClaimStatuses,
		},
	}
	if pod.Spec.Resources != nil {
		slim.Spec.Resources = &corev1.ResourceRequirements{Requests: pod.Spec.Resources.Requests}
	}
	if pod.Status.Resources != nil {
		slim.Status.Resources = &corev1.ResourceRequirements{Requests: pod.Status.Resources.Requests}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodResizePending {
			// Whether the resize is infeasible stands in the reason of the first.
			slim.Status.Conditions = []corev1.PodCondition{{
				Type: condition.Type, Status: condition.Status, Reason: condition.Reason,
			}}
			break
		}
	}
	// How the pod came up, in one condition for what stands in many fields.
	if summary := podstartup.Summarize(pod); summary != nil {
		slim.Status.Conditions = append(slim.Status.Conditions, *summary)
	}
	// A container's status counts where it differs from the container's spec,
	// that is while the container is resized. Else, which is nearly always, it
	// would only take twice the memory. An infeasible resize makes the spec
	// count for nothing, so then the status is all there is.
	if resourcehelper.IsPodResizeInfeasible(pod) {
		slim.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses, nil)
		slim.Status.InitContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses, nil)
	} else {
		slim.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses, pod.Spec.Containers)
		slim.Status.InitContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
	}
	return slim, nil
}

// slimOwners keeps the owner that controls the pod, which takes about 190 bytes a
// pod. Not every controller asks for it, but what the cache keeps does not depend
// on which of them run.
func slimOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	for _, o := range owners {
		if o.Controller != nil && *o.Controller {
			return []metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: new(true)}}
		}
	}
	return nil
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	slim := make([]corev1.Container, len(containers))
	for i, c := range containers {
		slim[i] = corev1.Container{
			Name:          c.Name,
			Resources:     corev1.ResourceRequirements{Requests: c.Resources.Requests},
			RestartPolicy: c.RestartPolicy,
		}
	}
	return slim
}

// slimStatuses returns what the statuses say about resources, without those
// that only repeat what the container of that name in the spec says.
func slimStatuses(statuses []corev1.ContainerStatus, spec []corev1.Container) []corev1.ContainerStatus {
	var slim []corev1.ContainerStatus
	for _, s := range statuses {
		if repeatsSpec(s, spec) {
			continue
		}
		kept := corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources}
		if s.Resources != nil {
			kept.Resources = &corev1.ResourceRequirements{Requests: s.Resources.Requests}
		}
		slim = append(slim, kept)
	}
	return slim
}

func repeatsSpec(status corev1.ContainerStatus, spec []corev1.Container) bool {
	for _, c := range spec {
		if c.Name != status.Name {
			continue
		}
		return (status.AllocatedResources == nil || sameResources(status.AllocatedResources, c.Resources.Requests)) &&
			(status.Resources == nil || status.Resources.Requests == nil || sameResources(status.Resources.Requests, c.Resources.Requests))
	}
	return false
}

func sameResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		other, ok := b[name]
		if !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
