// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage simulates a volume provisioner. It creates volumes for PersistentVolumeClaims of
// its StorageClass, resizes them, and deletes them after their claims are deleted. The volumes have
// no content.
package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Provisioner is the provisioner's name in StorageClasses.
const Provisioner = "sandbox.tidekeeper.dev/simulated"

// className is the name of the default StorageClass.
const className = "standard"

// BehaviorAnnotation on a PersistentVolumeClaim, a PersistentVolume or a StorageClass selects the
// provisioner's behavior. The annotation on the claim or volume takes precedence over the
// annotation on its class.
const BehaviorAnnotation = "sandbox.tidekeeper.dev/volume"

// behavior is a value of BehaviorAnnotation.
type behavior string

const (
	// provide means that volumes are created, resized and deleted immediately. It is the default.
	provide behavior = ""
	// hang means that requests to create, resize or delete a volume stay pending until the
	// annotation is removed.
	hang behavior = "hang"
	// refuse means that requests to create, resize or delete a volume fail until the annotation is
	// removed.
	refuse behavior = "refuse"
)

// behaviorOf returns the behavior from the annotation of an object or, if the object has no such
// annotation, of its StorageClass. A class that does not exist is nil.
func behaviorOf(object metav1.Object, class *storagev1.StorageClass) (behavior, error) {
	value, found := object.GetAnnotations()[BehaviorAnnotation]
	if !found && class != nil {
		value = class.Annotations[BehaviorAnnotation]
	}
	switch b := behavior(value); b {
	case provide, hang:
		return b, nil
	case refuse:
		return b, fmt.Errorf("annotation %s: %s", BehaviorAnnotation, refuse)
	}
	return refuse, fmt.Errorf("annotation %s: %q is neither %s nor %s", BehaviorAnnotation, value, hang, refuse)
}

// EnsureClass creates the default StorageClass if it does not exist.
func EnsureClass(ctx context.Context, client kubernetes.Interface) error {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        className,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          Provisioner,
		ReclaimPolicy:        &reclaim,
		VolumeBindingMode:    &binding,
		AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create StorageClass %s: %w", className, err)
	}
	return nil
}
