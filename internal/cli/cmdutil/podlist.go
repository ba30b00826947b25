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

	"tidekeeper.dev/tidekeeper/internal/wire"
)

// clusterClient is a client that decodes less of pods where all of them are listed.
type clusterClient struct {
	client.WithWatch
	config *rest.Config
}

// podFields are what the commands read of the pods of a cluster. Of the spec, that is all but
// what containers run; of the status, what a pod requests and whether it is ready.
var podFields = func() []string {
	fields := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.ownerReferences",
		"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.annotations[" + corev1.MirrorPodAnnotationKey + "]",
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

// listPods returns all pods of the cluster that have not ended, with podFields and nothing else:
// most of the time that a list takes is to decode what no command reads. If the API server sends
// something else than the expected protobuf, the error is [wire.ErrNotUnderstood].
func (c *clusterClient) listPods(ctx context.Context) ([]corev1.Pod, error) {
	mask, err := wire.NewMask(reflect.TypeFor[corev1.Pod](), podFields)
	if err != nil {
		return nil, fmt.Errorf("the fields of pods: %w", err)
	}
	http, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.config)
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	api, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Pod"), false, false, config, serializer.NewCodecFactory(Scheme), http)
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{ResourceVersion: "0", FieldSelector: notTerminated.String()}
	body, err := api.Get().Resource("pods").VersionedParams(&options, runtime.NewParameterCodec(Scheme)).Stream(ctx)
	if apierrors.IsNotAcceptable(err) {
		return nil, wire.NotUnderstood(err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var pods []corev1.Pod
	err = wire.ReadPage(body, "PodList", func(*metav1.ListMeta) {}, func(raw []byte) error {
		raw, err := mask.Prune(raw)
		if err != nil {
			return wire.NotUnderstood(err)
		}
		pods = append(pods, corev1.Pod{})
		if err := pods[len(pods)-1].Unmarshal(raw); err != nil {
			return wire.NotUnderstood(err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return pods, nil
}

// AllPods returns all pods of the cluster that have not ended. They may have only the fields
// that say what a pod requests, where it may be, and whether it is ready.
func AllPods(ctx context.Context, c client.Client) ([]corev1.Pod, error) {
	if c, ok := c.(*clusterClient); ok {
		if pods, err := c.listPods(ctx); !errors.Is(err, wire.ErrNotUnderstood) {
			return pods, err
		}
	}
	pods := &corev1.PodList{}
	err := c.List(ctx, pods, FromCache(), notTerminated)
	return pods.Items, err
}
