// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/optional"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/internal/workload"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// cacheOptions returns the options of the shared cache: the kinds that the chosen controllers
// watch, in the namespaces in which they watch them. The cache holds every pod of the cluster,
// so the fields that it keeps of a pod determine the memory use of the manager. A controller
// that reads a dropped field reads zero: keep the field, and add it to the test of the
// transform if it must stay. Fields of pods and nodes must also be listed in keptPodFields or
// nodeFields, or they are not even decoded.
func cacheOptions(watches []watchedKind) cache.Options {
	options := cache.Options{
		// A read of a kind that no chosen controller watches is a bug. Without this option, the
		// read would silently start an informer for the kind.
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            transformByDefault,
		// Pods dominate memory use. newCache also makes their decoding cheaper.
		NewInformer: podcache.NewInformer,
		ByObject:    map[client.Object]cache.ByObject{},
	}
	for _, w := range watches {
		if !w.optional {
			options.ByObject[w.object] = cacheConfig(w)
		}
	}
	return options
}

// newCache returns a function that creates the cache with inner. Unless pods are limited to
// namespaces, only the kept fields of pods and nodes are decoded, with Listing and Verify of
// content. byWorkload gives access to the pods by workload.
func newCache(watches []watchedKind, inner cache.NewCacheFunc, content podcache.Content, byWorkload *podcache.Workloads, registry prometheus.Registerer) cache.NewCacheFunc {
	return func(cfg *rest.Config, options cache.Options) (cache.Cache, error) {
		limited := slices.ContainsFunc(watches, func(w watchedKind) bool {
			_, ofPods := w.object.(*corev1.Pod)
			return ofPods && len(w.namespaces) > 0
		})
		if !limited {
			var err error
			content.Pods, content.Nodes = keptPodFields(), nodeFields
			options.NewInformer, err = podcache.New(
				podcache.Connection{Config: cfg, Client: options.HTTPClient, Scheme: options.Scheme}, content, registry)
			if err != nil {
				return nil, fmt.Errorf("set up the cache of pods: %w", err)
			}
		}
		options.NewInformer = byWorkload.Follow(options.NewInformer)
		return inner(cfg, options)
	}
}

// optionalKinds returns the kinds that the cluster need not serve, with their cache options.
func optionalKinds(watches []watchedKind) []optional.Kind {
	var kinds []optional.Kind
	for _, w := range watches {
		if w.optional {
			kinds = append(kinds, optional.Kind{Object: w.object, Config: cacheConfig(w)})
		}
	}
	return kinds
}

func cacheConfig(w watchedKind) cache.ByObject {
	config := cache.ByObject{Transform: transformOf(w.object)}
	for _, namespace := range w.namespaces {
		if config.Namespaces == nil {
			config.Namespaces = map[string]cache.Config{}
		}
		config.Namespaces[namespace] = cache.Config{}
	}
	return config
}

// transformOf returns the transform of a kind, or nil for the default.
func transformOf(object client.Object) toolscache.TransformFunc {
	switch object.(type) {
	case *corev1.Pod:
		return transformPod
	case *corev1.Node:
		return transformNode
	case *appsv1.ReplicaSet:
		return transformReplicaSet
	case *tidekeeperv1.ScheduledRestart:
		return transformRestart
	case *corev1.Namespace:
		return transformNamespace
	case *corev1.ConfigMap, *corev1.Secret:
		return transformConfig
	}
	if kind, err := workload.Of(object); err == nil {
		return transformWorkload(kind)
	}
	return nil
}

// transformByDefault drops metadata.managedFields, which no controller reads, and of an object in a
// namespace, whose size is up to tenants, all other metadata that slimMetadata drops: a kind of which
// controllers read more has a transform of its own.
func transformByDefault(in any) (any, error) {
	object, err := meta.Accessor(in)
	if err != nil {
		return nil, fmt.Errorf("an object without metadata in the cache: %w", err)
	}
	if object.SetManagedFields(nil); object.GetNamespace() != "" {
		slimMetadata(object)
	}
	return in, nil
}

// nodeFields are the fields that transformNode reads. No other field of a node is decoded.
var nodeFields = []string{
	"metadata.name", "metadata.uid", "metadata.resourceVersion", "metadata.deletionTimestamp",
	"metadata.labels", "metadata.annotations", "spec.taints", "spec.unschedulable",
	"status.capacity", "status.allocatable", "status.conditions.type", "status.conditions.status",
}

// transformNode keeps the fields of a node that pools need: its labels, annotations and taints,
// its capacity and allocatable resources, and whether it is ready and schedulable.
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
		Spec:   corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return slim, nil
}

// transformWorkload returns a function that drops the pod template of a workload, except the
// time of its last restart and the names of the ConfigMaps and Secrets that it uses, and the
// metadata that no controller reads. The number of pods, the update strategy and the status of
// the rollout remain. An update of the whole object would lose the dropped fields, so these
// kinds must only be patched.
func transformWorkload(kind *workload.Kind) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, ok := in.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T in the cache of workloads", in)
		}
		if err := kind.Trim(object); err != nil {
			return nil, fmt.Errorf("in the cache of workloads: %w", err)
		}
		slimMetadata(object)
		return in, nil
	}
}

// transformNamespace keeps the name, UID, resourceVersion and labels of a Namespace.
func transformNamespace(in any) (any, error) {
	namespace, ok := in.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of namespaces", in)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
	}}, nil
}

// transformReplicaSet drops the pod template of a ReplicaSet, except the time of its last restart,
// and the metadata that no controller reads. The selector is reduced to the fact that it requires
// the label of the pod count.
func transformReplicaSet(in any) (any, error) {
	set, ok := in.(*appsv1.ReplicaSet)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of ReplicaSets", in)
	}
	workload.TrimTemplate(&set.Spec.Template)
	set.Spec.Selector = podcount.SlimSelector(set.Spec.Selector)
	set.Status.Conditions = nil
	slimMetadata(set)
	return set, nil
}

// transformRestart drops the metadata of a ScheduledRestart that no controller reads.
func transformRestart(in any) (any, error) {
	restart, ok := in.(*tidekeeperv1.ScheduledRestart)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of ScheduledRestarts", in)
	}
	slimMetadata(restart)
	return restart, nil
}

// transformConfig replaces a ConfigMap or Secret by a record with hashes of its content. The
// record is not an object of the kind, so that no code can read content from the cache.
func transformConfig(in any) (any, error) { return podconfig.RecordOf(in) }

// keptAnnotations are the annotations that controllers read from workloads, their pod templates
// and ScheduledRestarts; keptLabels are the labels.
var (
	keptAnnotations = sets.New(
		tidekeeperv1.OptInAnnotation, tidekeeperv1.OptInScheduleAnnotation, tidekeeperv1.OptInTimeZoneAnnotation, tidekeeperv1.OptInMaxPodAgeAnnotation,
		tidekeeperv1.AppliedAnnotation, tidekeeperv1.RestartNowAnnotation, tidekeeperv1.LastTickAnnotation,
		tidekeeperv1.RestartedAtAnnotation,
	)
	keptLabels = sets.New(podcount.Label)
	// keptPodLabels are the labels that identify the workload of a pod.
	keptPodLabels = sets.New(pods.TemplateHashLabels()...)
)

// longestKept is the maximum number of bytes kept of an annotation's value. Every valid value
// is shorter.
const longestKept = 4096

// slimMetadata drops the metadata that no controller reads. Otherwise tenants could fill the
// cache: an object may have 256 KiB of annotations and more than a megabyte of labels.
func slimMetadata(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetFinalizers(nil)
	object.SetOwnerReferences(slimOwners(object.GetOwnerReferences()))
	object.SetAnnotations(slimMap(object.GetAnnotations(), keptAnnotations))
	object.SetLabels(slimMap(object.GetLabels(), keptLabels))
}

// slimMap returns the entries of a map with these keys, with values of a bounded length. The
// copies let the memory of the decoded object be freed.
func slimMap(in map[string]string, keys sets.Set[string]) map[string]string {
	var out map[string]string
	for key := range keys {
		value, ok := in[key]
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = strings.Clone(value[:min(len(value), longestKept)])
	}
	return out
}
