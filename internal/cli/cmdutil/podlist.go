// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
)

// clusterClient is a client that can list pods and decode only some of their fields, to save time
// and memory.
type clusterClient struct {
	client.WithWatch
	config *rest.Config
}

// podFields lists the pod fields that AllPods decodes. It includes all spec fields, but only the
// name, ports, resources and restart policy of containers.
var podFields = func() []string {
	fields := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.ownerReferences",
		"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.finalizers", "metadata.annotations[" + corev1.MirrorPodAnnotationKey + "]",
		"status.phase", "status.conditions", "status.startTime", "status.nominatedNodeName",
		"status.allocatedResources", "status.resources", "status.nodeAllocatableResourceClaimStatuses", "status.resourceClaimStatuses",
	}
	for _, of := range []string{"spec.containers", "spec.initContainers"} {
		fields = append(fields, of+".name", of+".ports", of+".resources", of+".restartPolicy")
	}
	for _, of := range []string{"status.containerStatuses", "status.initContainerStatuses"} {
		fields = append(fields, of+".name", of+".allocatedResources", of+".resources")
	}
	spec := reflect.TypeFor[corev1.PodSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		if !strings.HasSuffix(name, "ontainers") {
			fields = append(fields, "spec."+name)
		}
	}
	return fields
}()

// PodFields is a set of pod fields to decode.
type PodFields struct{ mask *wire.Mask }

// NewPodFields returns the set of the fields with the given paths. See [wire.NewMask] for the
// syntax.
func NewPodFields(paths []string) (PodFields, error) {
	mask, err := wire.NewMask(reflect.TypeFor[corev1.Pod](), paths)
	if err != nil {
		return PodFields{}, fmt.Errorf("the fields of pods: %w", err)
	}
	return PodFields{mask}, nil
}

// ListPods lists the pods of a namespace, or of all namespaces for "", with at least the given
// fields. It calls keep for each pod immediately after decoding it, so that keep can drop fields
// before they accumulate in memory.
func ListPods(ctx context.Context, c client.Client, namespace string, options *metav1.ListOptions, fields PodFields, keep func(*corev1.Pod)) ([]*corev1.Pod, metav1.ListMeta, error) {
	var pods []*corev1.Pod
	if c, ok := c.(*clusterClient); ok {
		about, err := c.listPods(ctx, namespace, options, fields, func(decode func(*corev1.Pod) error) error {
			pod := &corev1.Pod{}
			if err := decode(pod); err != nil {
				return err
			}
			keep(pod)
			pods = append(pods, pod)
			return nil
		})
		if !errors.Is(err, wire.ErrNotUnderstood) {
			return pods, about, err
		}
		pods = nil
	}
	list := &corev1.PodList{}
	if err := c.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: options.Limit, Continue: options.Continue, Raw: options}); err != nil {
		return nil, metav1.ListMeta{}, err
	}
	for i := range list.Items {
		keep(&list.Items[i])
		pods = append(pods, &list.Items[i])
	}
	return pods, list.ListMeta, nil
}

// listPods lists pods, and calls `each` once per pod. The function decode decodes the given fields
// of the pod. If the response is not the expected protobuf, the error is [wire.ErrNotUnderstood].
func (c *clusterClient) listPods(ctx context.Context, namespace string, options *metav1.ListOptions, fields PodFields, each func(decode func(*corev1.Pod) error) error) (about metav1.ListMeta, err error) {
	http, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return about, err
	}
	config := rest.CopyConfig(c.config)
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	api, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Pod"), false, false, config, serializer.NewCodecFactory(Scheme), http)
	if err != nil {
		return about, err
	}
	body, err := api.Get().NamespaceIfScoped(namespace, namespace != "").Resource("pods").VersionedParams(options, runtime.NewParameterCodec(Scheme)).Stream(ctx)
	if apierrors.IsNotAcceptable(err) {
		return about, wire.NotUnderstood(err)
	}
	if err != nil {
		return about, err
	}
	defer func() { _ = body.Close() }()
	err = wire.ReadPage(body, "PodList", func(m *metav1.ListMeta) { about = *m }, func(raw []byte) error {
		return each(func(pod *corev1.Pod) error {
			raw, err := fields.mask.Prune(raw)
			if err == nil {
				err = pod.Unmarshal(raw)
			}
			if err != nil {
				return wire.NotUnderstood(err)
			}
			return nil
		})
	})
	if err != nil {
		return about, fmt.Errorf("list pods: %w", err)
	}
	return about, nil
}

// AllPods returns all non-terminated pods of the cluster. The fields for requests, scheduling
// constraints, readiness and deletion are set; other fields may be missing.
func AllPods(ctx context.Context, c client.Client) ([]corev1.Pod, error) {
	fields, err := NewPodFields(podFields)
	if err != nil {
		return nil, err
	}
	if c, ok := c.(*clusterClient); ok {
		var pods []corev1.Pod
		options := metav1.ListOptions{ResourceVersion: "0", FieldSelector: notTerminated.String()}
		_, err := c.listPods(ctx, "", &options, fields, func(decode func(*corev1.Pod) error) error {
			pods = append(pods, corev1.Pod{})
			return decode(&pods[len(pods)-1])
		})
		if !errors.Is(err, wire.ErrNotUnderstood) {
			return pods, err
		}
	}
	list := &corev1.PodList{}
	err = c.List(ctx, list, FromCache(), notTerminated)
	return list.Items, err
}
