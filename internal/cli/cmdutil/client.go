// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/migrate"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// FieldManager is the field manager name of all writes by the plugin.
const FieldManager = "kubectl-tide"

// Scheme contains the API kinds that the plugin reads and writes as typed objects.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(appsv1.AddToScheme(s))
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(nodev1.AddToScheme(s))
	utilruntime.Must(coordinationv1.AddToScheme(s))
	utilruntime.Must(authorizationv1.AddToScheme(s))
	utilruntime.Must(policyv1.AddToScheme(s))
	utilruntime.Must(resourcev1.AddToScheme(s))
	utilruntime.Must(schedulingv1.AddToScheme(s))
	utilruntime.Must(storagev1.AddToScheme(s))
	utilruntime.Must(tidekeeperv1.AddToScheme(s))
	return s
}

// NodeMetricsKind is the kind of the node usage objects that a metrics server provides. The plugin
// reads it as unstructured objects.
var NodeMetricsKind = schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "NodeMetrics"}

// newMapper returns a static REST mapper for the plugin's kinds, to save discovery requests.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	ours, core := tidekeeperv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	mapper.Add(ours.WithKind("ScheduledRestart"), meta.RESTScopeNamespace)
	mapper.Add(ours.WithKind("NodePool"), meta.RESTScopeRoot)
	mapper.Add(ours.WithKind("Freeze"), meta.RESTScopeRoot)
	mapper.Add(ours.WithKind("NodeMaintenance"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	for _, kind := range []string{"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment"} {
		mapper.Add(storagev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"ResourceSlice", "DeviceClass", "DeviceTaintRule"} {
		mapper.Add(resourcev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"ResourceClaim", "ResourceClaimTemplate"} {
		mapper.Add(resourcev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	mapper.Add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(migrate.NodePoolKind, meta.RESTScopeRoot)
	mapper.Add(migrate.EruKind, meta.RESTScopeNamespace)
	for _, k := range workload.Kinds {
		mapper.Add(k.GroupVersionKind, meta.RESTScopeNamespace)
	}
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	mapper.Add(nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), meta.RESTScopeRoot)
	metrics := NodeMetricsKind.GroupVersion()
	mapper.AddSpecific(NodeMetricsKind, metrics.WithResource("nodes"), metrics.WithResource("node"), meta.RESTScopeRoot)
	return mapper
}

// ClientFor returns a client for the kinds in Scheme.
func ClientFor(config *rest.Config) (client.WithWatch, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme, Mapper: newMapper()})
	if err != nil {
		return nil, err
	}
	return &clusterClient{WithWatch: c, config: config}, nil
}

// NamespaceExists returns an error if the namespace does not exist, because listing objects in a
// missing namespace just returns an empty list. It returns nil if the user is not allowed to get
// namespaces.
func NamespaceExists(ctx context.Context, c client.Client, name string) error {
	if name == "" {
		return nil
	}
	err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return AboutKind(err, "Namespace", "", name)
}

// FromCache is a list option that makes the API server serve an unpaginated list from its watch
// cache. Use it for lists of many nodes and pods if slightly stale objects are acceptable.
func FromCache() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// fewNodes is the maximum number of nodes for which PodsOf lists the pods node by node. For more
// nodes, it lists all pods of the cluster in one request.
const fewNodes = 8

// notTerminated selects the pods that have not terminated. Terminated pods no longer use node
// capacity.
var notTerminated = client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")}

// PodsOf returns the pods on the given nodes. The result may include pods on other nodes.
func PodsOf(ctx context.Context, c client.Client, nodes []string) ([]corev1.Pod, error) {
	if len(nodes) > fewNodes {
		return AllPods(ctx, c)
	}
	var all []corev1.Pod
	for _, node := range nodes {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, FromCache(), client.MatchingFields{"spec.nodeName": node}); err != nil {
			return nil, err
		}
		all = append(all, pods.Items...)
	}
	return all, nil
}

// WithoutTimeout returns a copy of config without a timeout, and the original timeout. A watch is a
// single long request, which a client timeout would abort.
func WithoutTimeout(config *rest.Config) (*rest.Config, time.Duration) {
	config = rest.CopyConfig(config)
	timeout := config.Timeout
	config.Timeout = 0
	return config, timeout
}
