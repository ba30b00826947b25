// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// podSource lists and watches pods. When it lists, it decodes only the fields that the keeper
// keeps. It does not stream lists over a watch, because API servers send an ordinary list several
// times as fast.
type podSource struct {
	client    client.WithWatch
	namespace string
	keeper    *keeper
}

// IsWatchListSemanticsUnSupported makes the reflector send a list request before it watches,
// instead of streaming the list.
func (s *podSource) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (s *podSource) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (s *podSource) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (s *podSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	fields, err := cmdutil.NewPodFields(podFields)
	if err != nil {
		return nil, err
	}
	pods, about, err := cmdutil.ListPods(ctx, s.client, s.namespace, &o, fields, s.keeper.keepPod)
	if err != nil {
		return nil, err
	}
	// An informer uses the objects of a metav1.List without copying them, unlike the items of a
	// PodList.
	list := &metav1.List{ListMeta: about, Items: make([]runtime.RawExtension, len(pods))}
	for i, pod := range pods {
		list.Items[i].Object = pod
	}
	return list, nil
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (s *podSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := s.client.Watch(ctx, &corev1.PodList{}, &client.ListOptions{Namespace: s.namespace, Raw: &o})
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if pod, ok := e.Object.(*corev1.Pod); ok {
			s.keeper.keepPod(pod)
		}
		return e, true
	}), nil
}

// podFields lists the pod fields that podSource decodes in lists: the fields that [keeper.keepPod]
// keeps or reads.
var podFields = func() []string {
	fields := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion", "metadata.labels", "metadata.ownerReferences",
		"metadata.creationTimestamp", "metadata.deletionTimestamp",
	}
	add := func(of reflect.Type, at string, except ...string) {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "" && !slices.Contains(except, name) {
				fields = append(fields, at+name)
			}
		}
	}
	add(reflect.TypeFor[corev1.PodSpec](), "spec.", "containers", "initContainers", "ephemeralContainers", "volumes", "securityContext", "dnsConfig", "hostAliases")
	for _, at := range []string{"spec.containers.", "spec.initContainers."} {
		add(reflect.TypeFor[corev1.Container](), at, "env", "envFrom", "command", "args", "volumeMounts", "volumeDevices", "lifecycle", "securityContext", "startupProbe", "readinessProbe", "livenessProbe")
		// A single field of each probe suffices to show that the container has the probe.
		fields = append(fields, at+"startupProbe.periodSeconds", at+"readinessProbe.periodSeconds", at+"livenessProbe.periodSeconds")
	}
	const source = "spec.volumes.volumeSource."
	add(reflect.TypeFor[corev1.VolumeSource](), source, "projected", "configMap", "secret", "downwardAPI", "emptyDir", "hostPath")
	fields = append(fields, "spec.volumes.name", source+"projected.defaultMode", source+"configMap.defaultMode", source+"secret.defaultMode",
		source+"downwardAPI.defaultMode", source+"emptyDir.medium", source+"hostPath.type")
	add(reflect.TypeFor[corev1.PodStatus](), "status.", "hostIPs", "podIPs", "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
	for _, at := range []string{"status.containerStatuses.", "status.initContainerStatuses."} {
		add(reflect.TypeFor[corev1.ContainerStatus](), at, "imageID", "containerID", "volumeMounts", "user", "allocatedResourcesStatus")
	}
	return fields
}()
