// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
)

// The upstream library for external provisioners is not used, because it requires other versions of
// the Kubernetes modules.

// lookAgain is the interval at which unchanged claims and volumes are processed again. This retries
// failed requests, and applies changes of their StorageClass.
const lookAgain = 5 * time.Second

const (
	// wantedFrom is the annotation of a PersistentVolumeClaim that names the provisioner of its
	// volume. The controller manager sets it to request a volume.
	wantedFrom = "volume.kubernetes.io/storage-provisioner"
	// provisionedBy is the annotation of a volume that names the provisioner that created it. The
	// same provisioner must delete the volume.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// provisioner creates, resizes and deletes the volumes of PersistentVolumeClaims.
type provisioner struct {
	client  kubernetes.Interface
	volumes corelisters.PersistentVolumeLister
	events  record.EventRecorder
}

// Run provisions volumes until the context is done.
func Run(ctx context.Context, client kubernetes.Interface) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	factory := informers.NewSharedInformerFactory(client, lookAgain)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	p := &provisioner{
		client:  client,
		volumes: volumes.Lister(),
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Provisioner}),
	}
	_, err := claims.Informer().AddEventHandler(handler(func(object any) { p.seeClaim(ctx, object.(*corev1.PersistentVolumeClaim)) }))
	if err != nil {
		return err
	}
	_, err = volumes.Informer().AddEventHandler(handler(func(object any) { p.seeVolume(ctx, object.(*corev1.PersistentVolume)) }))
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// handler returns an event handler that calls the function "see" for each existing object, after
// each change of an object, and periodically for each object.
func handler(see func(any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}
}

func (p *provisioner) seeClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	switch {
	case claim.DeletionTimestamp != nil:
	case claim.Spec.VolumeName == "" && claim.Annotations[wantedFrom] == Provisioner:
		p.failed(claim, "ProvisioningFailed", p.provide(ctx, claim))
	case claim.Status.Phase == corev1.ClaimBound:
		p.failed(claim, "VolumeResizeFailed", p.grow(ctx, claim))
	}
}

func (p *provisioner) seeVolume(ctx context.Context, volume *corev1.PersistentVolume) {
	if volume.Status.Phase == corev1.VolumeReleased && volume.DeletionTimestamp == nil &&
		volume.Annotations[provisionedBy] == Provisioner && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		p.failed(volume, "VolumeFailedDelete", p.remove(ctx, volume))
	}
}

// failed records an error as a warning Event about the object. It ignores an error because the
// object has changed, which is processed again, or no longer exists.
func (p *provisioner) failed(object runtime.Object, reason string, err error) {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return
	}
	p.events.Event(object, corev1.EventTypeWarning, reason, err.Error())
	klog.ErrorS(err, "Trying again", "reason", reason)
}

// classOf reads a StorageClass from the API server. It is nil if there is no such class. The class is
// not read from a cache, which could be older than the claim or the volume: a request must not
// succeed that a user has made after the class was annotated.
func (p *provisioner) classOf(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return class, err
}

// behaviorOf returns the simulated behavior that is set for a volume or for the claim of a volume.
func (p *provisioner) behaviorOf(ctx context.Context, object metav1.Object, className string) (behavior, error) {
	class, err := p.classOf(ctx, className)
	if err != nil {
		return hang, err
	}
	return behaviorOf(object, class)
}

// provide creates the volume for a claim. The controller manager then binds the claim to the
// volume.
func (p *provisioner) provide(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class, err := p.classOf(ctx, *claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	b, err := behaviorOf(claim, class)
	if err != nil || b == hang || class == nil {
		return err
	}
	owner, err := reference.GetReference(scheme.Scheme, claim)
	if err != nil {
		return err
	}
	name := "pvc-" + string(claim.UID)
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              class.Name,
			ClaimRef:                      owner,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			MountOptions:                  class.MountOptions,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			// Host path volumes do not have to be attached to a node.
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/sandbox/" + name}},
		},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // The volume already exists, and the claim is about to be bound to it.
	case err != nil:
		return fmt.Errorf("create PersistentVolume %s: %w", name, err)
	}
	p.events.Eventf(claim, corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume %s", name)
	return nil
}

// grow resizes a volume to the size that its claim requests, and then updates the claim's status.
func (p *provisioner) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wanted, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if wanted.Cmp(has) <= 0 {
		return nil
	}
	volume, err := p.volumes.Get(claim.Spec.VolumeName)
	if err != nil || volume.Annotations[provisionedBy] != Provisioner {
		return err
	}
	b, err := p.behaviorOf(ctx, claim, volume.Spec.StorageClassName)
	if err != nil || b == hang {
		return err
	}
	volume = volume.DeepCopy()
	volume.Spec.Capacity[corev1.ResourceStorage] = wanted
	if _, err := p.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim = claim.DeepCopy()
	claim.Status.Capacity[corev1.ResourceStorage] = wanted
	_, err = p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// remove deletes a released volume. Only the object has to be deleted, because the volume has no
// content.
func (p *provisioner) remove(ctx context.Context, volume *corev1.PersistentVolume) error {
	b, err := p.behaviorOf(ctx, volume, volume.Spec.StorageClassName)
	if err != nil || b == hang {
		return err
	}
	return p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}})
}
