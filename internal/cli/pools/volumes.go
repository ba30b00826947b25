// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// readNeeds reads the objects on which the volumes and devices of the given pods depend, for the
// evaluation by r.
func readNeeds(ctx context.Context, c client.Client, r *view.Room, asked []*corev1.Pod) error {
	volumes, err := readVolumes(ctx, c, asked)
	if err != nil {
		return err
	}
	devices, err := readDevices(ctx, c, asked)
	if err != nil {
		return err
	}
	r.SetNeeds(volumes, devices)
	return nil
}

// readVolumes reads the storage objects on which the volumes of the given pods depend. It returns
// nil if the pods have no such volumes. If the user is not allowed to list some of the objects,
// results are upper bounds, and name them.
func readVolumes(ctx context.Context, c client.Client, asked []*corev1.Pod) (*capacity.Volumes, error) {
	namespaces := sets.Set[string]{}
	for _, pod := range asked {
		if !pods.IsTerminal(pod) && capacity.HasVolumes(pod) {
			namespaces.Insert(pod.Namespace)
		}
	}
	if len(namespaces) == 0 {
		return nil, nil
	}
	v := &capacity.Volumes{}
	if len(namespaces) == 1 {
		v.Namespace, _ = namespaces.PopAny()
	}
	list := func(resource string, into client.ObjectList, options ...client.ListOption) error {
		err := c.List(ctx, into, append(options, cmdutil.FromCache())...)
		if apierrors.IsForbidden(err) {
			v.Unread = append(v.Unread, resource)
			return nil
		}
		return err
	}
	claims, volumes, classes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &storagev1.StorageClassList{}
	drivers, nodes, attachments := &storagev1.CSIDriverList{}, &storagev1.CSINodeList{}, &storagev1.VolumeAttachmentList{}
	if err := list("persistentvolumeclaims", claims, client.InNamespace(v.Namespace)); err != nil {
		return nil, err
	}
	for resource, into := range map[string]client.ObjectList{
		"persistentvolumes": volumes, "storageclasses": classes, "csidrivers": drivers, "csinodes": nodes, "volumeattachments": attachments,
	} {
		if err := list(resource, into); err != nil {
			return nil, err
		}
	}
	v.Claims, v.Volumes, v.Classes = lists.Pointers(claims.Items), lists.Pointers(volumes.Items), lists.Pointers(classes.Items)
	v.Drivers, v.CSINodes, v.Attachments = lists.Pointers(drivers.Items), lists.Pointers(nodes.Items), lists.Pointers(attachments.Items)
	return v, nil
}
