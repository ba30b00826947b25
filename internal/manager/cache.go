// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/workload"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// cacheOptions returns the options of the shared cache. It holds the kinds that the chosen
// controllers watch, either from all namespaces or from the watched namespaces only. The cache
// holds every pod of the cluster, so the pod fields that it keeps determine the manager's memory
// use. A controller that reads a dropped field gets the field's zero value.
//
// To keep another field of a kind, add the field to the kind's transform and to the transform's
// test. A field of a pod or node must also be listed in keptPodFields or nodeFields, because it is
// not decoded otherwise.
func cacheOptions(watches []watchedKind) cache.Options {
	options := cache.Options{
		// Reading a kind that no chosen controller watches is a bug. Without this option, the read
		// would silently start an informer for the kind.
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            transformByDefault,
		// Pods take most of the memory, so they are stored as compact records. Unless pods are
		// watched only in some namespaces, newCache replaces this function by a function that also
		// decodes pods with less CPU time and memory.
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

// newCache returns a constructor for the shared cache, which builds the cache with `inner`. Unless
// pods are watched only in some namespaces, the cache decodes only the kept fields of pods and
// nodes, as `content` configures. byWorkload can query the pods of the constructed cache by
// workload.
func newCache(watches []watchedKind, inner cache.NewCacheFunc, content podcache.Content, byWorkload *podcache.Workloads, registry prometheus.Registerer) cache.NewCacheFunc {
	return func(cfg *rest.Config, options cache.Options) (cache.Cache, error) {
		limited := slices.ContainsFunc(watches, func(w watchedKind) bool {
			_, ofPods := w.object.(*corev1.Pod)
			return ofPods && len(w.namespaces) > 0
		})
		if !limited {
			var err error
			content.Pods, content.Nodes = keptPodFields(), nodeFields
			if watchesBudgets(watches) {
				content.Pods.Facts, content.Pods.Ready = drain.NewHasher(maphash.MakeSeed()), podtimeline.IsReady
			}
			options.NewInformer, err = podcache.New(
				podcache.Connection{Config: cfg, Client: options.HTTPClient, Scheme: options.Scheme}, content, registry)
			if err != nil {
				return nil, fmt.Errorf("set up the cache of pods: %w", err)
			}
		}
		objects := &fairness.Objects{}
		if err := registry.Register(objects); err != nil {
			return nil, fmt.Errorf("register the metric of cached objects: %w", err)
		}
		options.NewInformer = objects.Follow(byWorkload.Follow(options.NewInformer))
		return inner(cfg, options)
	}
}

// optionalKinds returns the watched kinds whose CRDs may be missing in the cluster, with their
// cache options.
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

// transformOf returns the transform of a kind (the function that reduces an object before the cache
// stores it). It returns nil if transformByDefault applies.
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
	case *policyv1.PodDisruptionBudget:
		return transformBudget
	}
	if kind, err := workload.Of(object); err == nil {
		return transformWorkload(kind)
	}
	return nil
}

// transformByDefault reduces an object before the cache stores it, if the object's kind has no
// transform of its own. It drops metadata.managedFields, which no controller reads. Tenants control
// the size of namespaced objects, so it also reduces the other metadata of these objects with
// slimMetadata. If a controller reads more metadata of a kind, that kind needs its own transform.
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

// nodeFields lists the fields that transformNode reads. All other fields of a node are not decoded.
var nodeFields = []string{
	"metadata.name", "metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.deletionTimestamp",
	"metadata.labels", "metadata.annotations", "spec.taints", "spec.unschedulable",
	"status.capacity", "status.allocatable", "status.conditions.type", "status.conditions.status",
	"status.nodeInfo.bootID", "status.nodeInfo.kubeletVersion",
}

// transformNode keeps the fields that node pools and node maintenance need: a node's age, labels,
// annotations and taints, its capacity and allocatable resources, whether it is Ready, drained and
// schedulable, and the fields that show a reboot or an upgrade of its kubelet.
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
			CreationTimestamp: node.CreationTimestamp,
			DeletionTimestamp: node.DeletionTimestamp,
			Labels:            node.Labels,
			Annotations:       node.Annotations,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{
			Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable,
			NodeInfo: corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID, KubeletVersion: node.Status.NodeInfo.KubeletVersion},
		},
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady || condition.Type == corev1.NodeDrained {
			slim.Status.Conditions = append(slim.Status.Conditions, corev1.NodeCondition{Type: condition.Type, Status: condition.Status})
		}
	}
	return slim, nil
}

// transformWorkload returns the transform of a kind of workload. It drops the metadata that no
// controller reads. Of the pod template, it keeps only the time of the last restart and the names
// of the ConfigMaps and Secrets that the pods use. It keeps the number of pods, the update strategy
// and the rollout's status. These kinds must only be patched, because an update with a cached
// object would remove the dropped fields from the cluster.
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

// transformReplicaSet drops the metadata that no controller reads, and the conditions. Of the pod
// template, it keeps only the time of the last restart. Of the selector, it keeps only the
// requirement that the label pod-count exists, if the selector uses this label.
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

// transformRestart drops the ScheduledRestart metadata that no controller reads.
func transformRestart(in any) (any, error) {
	restart, ok := in.(*tidekeeperv1.ScheduledRestart)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of ScheduledRestarts", in)
	}
	slimMetadata(restart)
	return restart, nil
}

// transformConfig replaces a ConfigMap or Secret by a record with hashes of its content. The record
// has a different Go type, so that no code can read a Secret's content from the cache.
func transformConfig(in any) (any, error) { return podconfig.RecordOf(in) }

// transformBudget replaces a PodDisruptionBudget with a record of bounded size that holds only the
// fields that determine whether it allows evictions.
func transformBudget(in any) (any, error) { return drain.CachedBudgetOf(in) }

// watchesBudgets reports whether PodDisruptionBudgets are among the watched kinds.
func watchesBudgets(watches []watchedKind) bool {
	return slices.ContainsFunc(watches, func(w watchedKind) bool {
		_, is := w.object.(*policyv1.PodDisruptionBudget)
		return is
	})
}

// keptAnnotations and keptLabels are the annotation and label keys that controllers read from
// workloads, pod templates and ScheduledRestarts.
var (
	keptAnnotations = sets.New(
		tidekeeperv1.OptInAnnotation, tidekeeperv1.OptInScheduleAnnotation, tidekeeperv1.OptInTimeZoneAnnotation, tidekeeperv1.OptInMaxPodAgeAnnotation,
		tidekeeperv1.AppliedAnnotation, tidekeeperv1.RestartNowAnnotation, tidekeeperv1.LastTickAnnotation,
		tidekeeperv1.RestartedAtAnnotation,
	)
	keptLabels = sets.New(podcount.Label, tidekeeperv1.NodeMaintenanceLabel, tidekeeperv1.EvictionResponderLabel)
	// keptPodLabels is the set of labels that identify a pod's workload.
	keptPodLabels = sets.New(pods.TemplateHashLabels()...)
)

// longestKept is the maximum number of bytes kept of an annotation or label value. All valid values
// are shorter.
const longestKept = 4096

// slimMetadata drops the metadata that no controller reads. If it were cached, tenants could fill
// the manager's memory: an object may have 256 KiB of annotations and more than a megabyte of
// labels.
func slimMetadata(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetFinalizers(nil)
	object.SetOwnerReferences(slimOwners(object.GetOwnerReferences()))
	object.SetAnnotations(slimMap(object.GetAnnotations(), keptAnnotations))
	object.SetLabels(slimMap(object.GetLabels(), keptLabels))
}

// slimMap returns a copy of the map's entries with the given keys, and limits the length of their
// values. The values are copied so that the decoded object's memory can be freed.
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
