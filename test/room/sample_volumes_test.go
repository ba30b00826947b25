// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// creator is the part of a client that creates objects of one kind.
type creator[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// create creates objects.
func create[T any](t *testing.T, by creator[T], objects ...T) {
	t.Helper()
	for _, object := range objects {
		if _, err := by.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// createVolumes creates the storage objects of a world. uids has the UIDs of its pods, by their names.
func (s *scheduler) createVolumes(t *testing.T, w *world, uids map[string]types.UID) {
	t.Helper()
	create(t, s.StorageV1().StorageClasses(), w.volumes.Classes...)
	create(t, s.StorageV1().CSIDrivers(), w.volumes.Drivers...)
	create(t, s.StorageV1().CSINodes(), w.volumes.CSINodes...)
	for _, c := range w.volumes.Claims {
		i := slices.IndexFunc(w.volumes.Volumes, func(v *corev1.PersistentVolume) bool { return v.Name == c.Spec.VolumeName })
		var v *corev1.PersistentVolume
		if i >= 0 {
			v = w.volumes.Volumes[i]
		}
		s.createClaim(t, c, v, uids)
	}
	for _, v := range w.volumes.Volumes {
		if v.Spec.ClaimRef == nil {
			s.createVolume(t, v)
		}
	}
	create(t, s.StorageV1().VolumeAttachments(), w.volumes.Attachments...)
}

// createClaim creates a claim unless it exists, and its volume, if it has one.
func (s *scheduler) createClaim(t *testing.T, of *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume, uids map[string]types.UID) {
	t.Helper()
	claims, c := s.CoreV1().PersistentVolumeClaims(of.Namespace), of.DeepCopy()
	for i := range c.OwnerReferences {
		c.OwnerReferences[i].UID = uids[c.OwnerReferences[i].Name]
	}
	created, err := claims.Create(t.Context(), c, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	created.Status.Phase = of.Status.Phase
	if _, err := claims.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if of.DeletionTimestamp != nil {
		if err := claims.Delete(t.Context(), of.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if v != nil {
		v = v.DeepCopy()
		v.Spec.ClaimRef.UID = created.UID
		s.createVolume(t, v)
	}
}

func (s *scheduler) createVolume(t *testing.T, of *corev1.PersistentVolume) {
	t.Helper()
	created, err := s.CoreV1().PersistentVolumes().Create(t.Context(), of, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status.Phase = of.Status.Phase
	if _, err := s.CoreV1().PersistentVolumes().UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// bindClaims does for the claims of copies what the volume controller and the drivers do: it binds
// each to the volume that the scheduler has chosen, or to a new one.
func (s *scheduler) bindClaims(ctx context.Context, w *world) error {
	claims, err := s.CoreV1().PersistentVolumeClaims("shop").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	volumes, err := s.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Spec.VolumeName != "" {
			continue
		}
		node := slices.IndexFunc(w.nodes, func(n *corev1.Node) bool { return n.Name == c.Annotations[selectedNode] })
		chosen := slices.IndexFunc(volumes.Items, func(v corev1.PersistentVolume) bool { return v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == c.UID })
		var v *corev1.PersistentVolume
		switch {
		case chosen >= 0:
			v = &volumes.Items[chosen]
		case node >= 0:
			class := w.volumes.Classes[slices.IndexFunc(w.volumes.Classes, func(class *storagev1.StorageClass) bool { return class.Name == *c.Spec.StorageClassName })]
			v = provision(c, class, w.nodes[node])
			bind(c, v)
			if v, err = s.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{}); err != nil {
				return err
			}
		default:
			continue
		}
		if err := s.bind(ctx, c, v); err != nil {
			return err
		}
	}
	return nil
}

// bind binds a claim to a volume.
func (s *scheduler) bind(ctx context.Context, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) error {
	bind(c, v)
	_, volumeErr := s.CoreV1().PersistentVolumes().UpdateStatus(ctx, v, metav1.UpdateOptions{})
	updated, err := s.CoreV1().PersistentVolumeClaims(c.Namespace).Update(ctx, c, metav1.UpdateOptions{})
	if err := errors.Join(volumeErr, err); err != nil {
		return fmt.Errorf("bind claim %s: %w", c.Name, err)
	}
	updated.Status.Phase = corev1.ClaimBound
	_, err = s.CoreV1().PersistentVolumeClaims(c.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	return err
}

// removeVolumes deletes all storage objects. No controller removes the finalizers that protect those
// in use.
func (s *scheduler) removeVolumes(t *testing.T) {
	t.Helper()
	ctx, patch, none := t.Context(), []byte(`{"metadata":{"finalizers":null}}`), metav1.ListOptions{}
	claims, err := s.CoreV1().PersistentVolumeClaims("").List(ctx, none)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims.Items {
		of := s.CoreV1().PersistentVolumeClaims(c.Namespace)
		_, err := of.Patch(ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if c.DeletionTimestamp == nil {
			err = errors.Join(err, of.Delete(ctx, c.Name, metav1.DeleteOptions{}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	volumes, err := s.CoreV1().PersistentVolumes().List(ctx, none)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range volumes.Items {
		_, err := s.CoreV1().PersistentVolumes().Patch(ctx, v.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err := errors.Join(err, s.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{})); err != nil {
			t.Fatal(err)
		}
	}
	storage, now := s.StorageV1(), metav1.DeleteOptions{}
	if err := errors.Join(
		storage.StorageClasses().DeleteCollection(ctx, now, none), storage.CSIDrivers().DeleteCollection(ctx, now, none),
		storage.CSINodes().DeleteCollection(ctx, now, none), storage.VolumeAttachments().DeleteCollection(ctx, now, none),
	); err != nil {
		t.Fatal(err)
	}
}

// forgetNodes removes the nodes that were chosen for claims before: a driver would create the
// volumes of these claims at any moment.
func (w *world) forgetNodes() {
	for _, c := range w.volumes.Claims {
		delete(c.Annotations, selectedNode)
	}
}
