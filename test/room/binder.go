// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"errors"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
)

// binder holds the storage objects that the scheduler's plugins read, and does what the API server,
// the controllers and the drivers do for the volumes of copies.
type binder struct {
	claims, volumes, classes, drivers, nodes, attachments cache.Indexer
}

func newBinder(of informers.SharedInformerFactory) *binder {
	core, storage := of.Core().V1(), of.Storage().V1()
	return &binder{
		claims: core.PersistentVolumeClaims().Informer().GetIndexer(), volumes: core.PersistentVolumes().Informer().GetIndexer(),
		classes: storage.StorageClasses().Informer().GetIndexer(), drivers: storage.CSIDrivers().Informer().GetIndexer(),
		nodes: storage.CSINodes().Informer().GetIndexer(), attachments: storage.VolumeAttachments().Informer().GetIndexer(),
	}
}

// reset replaces all storage objects by those of a world.
func (b *binder) reset(w *world) error {
	v := w.volumes
	return errors.Join(
		replace(b.claims, v.Claims), replace(b.volumes, v.Volumes), replace(b.classes, v.Classes), replace(b.drivers, v.Drivers),
		replace(b.nodes, v.CSINodes), replace(b.attachments, v.Attachments),
	)
}

func replace[T any](in cache.Indexer, by []T) error {
	if len(by) == 0 && len(in.ListKeys()) == 0 {
		return nil
	}
	list := make([]any, len(by))
	for i := range by {
		list[i] = by[i]
	}
	return in.Replace(list, "")
}

// copyOf returns a copy of the world's pod.
func (w *world) copyOf(i int) *corev1.Pod {
	pod := w.copy.DeepCopy()
	pod.Name = fmt.Sprint("copy-", i)
	pod.UID = types.UID(pod.Name)
	return pod
}

// ownClaims returns the claims that are created for a copy. If a claim is that of a StatefulSet, the
// pod's volume becomes one of the claim of its ordinal.
func (w *world) ownClaims(pod *corev1.Pod, i int) (list []*corev1.PersistentVolumeClaim) {
	for k := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[k]
		if v.Ephemeral == nil {
			continue
		}
		template := v.Ephemeral.VolumeClaimTemplate
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + "-" + v.Name}, Spec: *template.Spec.DeepCopy()}
		if template.Name != "" {
			c.Name = fmt.Sprint(template.Name, firstOrdinal+i)
			v.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}
		} else {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)}}
		}
		c.UID = types.UID(c.Name)
		c.Status.Phase = corev1.ClaimPending
		if c.Spec.StorageClassName == nil {
			c.Spec.StorageClassName = new(classWait)
		}
		list = append(list, c)
	}
	return list
}

// volumeAtOnce binds a claim to a volume in a random zone, if it need not wait for a pod.
func (w *world) volumeAtOnce(c *corev1.PersistentVolumeClaim, random *rand.Rand) *corev1.PersistentVolume {
	if *c.Spec.StorageClassName != classNow {
		return nil
	}
	v := newVolume("pv-"+c.Name, disks, &c.Spec)
	v.Spec.NodeAffinity = inZoneOf(w.nodes[random.IntN(len(w.nodes))])
	bind(c, v)
	return v
}

// create creates claims.
func (b *binder) create(claims []*corev1.PersistentVolumeClaim, w *world, random *rand.Rand) error {
	for _, c := range claims {
		if _, exists, err := b.claims.Get(c); exists || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if v := w.volumeAtOnce(c, random); v != nil {
			if err := b.volumes.Add(v); err != nil {
				return err
			}
		}
		if err := b.claims.Add(c); err != nil {
			return err
		}
	}
	return nil
}

// provision returns a new volume for a claim, as a driver creates it for a pod on a node: disks are in
// the zone of the node, and wherever else allowedTopologies distinguishes nodes.
func provision(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node *corev1.Node) *corev1.PersistentVolume {
	v := newVolume("pv-"+c.Name, class.Provisioner, &c.Spec)
	if class.Provisioner == shares {
		return v
	}
	v.Spec.NodeAffinity = inZoneOf(node)
	for _, term := range class.AllowedTopologies {
		for _, r := range term.MatchLabelExpressions {
			if value, has := node.Labels[r.Key]; has && v.Spec.NodeAffinity != nil {
				of := &v.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
				of.MatchExpressions = append(of.MatchExpressions, corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
			}
		}
	}
	return v
}

func inZoneOf(n *corev1.Node) *corev1.VolumeNodeAffinity {
	zone, zoned := n.Labels[corev1.LabelTopologyZone]
	if !zoned {
		return nil
	}
	return onlyOn(corev1.LabelTopologyZone, zone)
}

// bind binds the claims of a copy that is placed on a node: to free volumes, by the function with
// which the scheduler finds them, or to new ones, which the driver creates in the zone of the node.
func (b *binder) bind(pod *corev1.Pod, node *corev1.Node) error {
	for i := range pod.Spec.Volumes {
		c, err := b.claimOf(pod, &pod.Spec.Volumes[i])
		if err != nil {
			return err
		}
		if c == nil || c.Spec.VolumeName != "" {
			continue
		}
		c = c.DeepCopy()
		found, err := b.free(c, node)
		if err != nil {
			return err
		}
		if found == nil {
			class, _, err := b.classes.GetByKey(*c.Spec.StorageClassName)
			if err != nil {
				return err
			}
			found = provision(c, class.(*storagev1.StorageClass), node)
		}
		bind(c, found)
		if err := errors.Join(b.volumes.Add(found), b.claims.Update(c)); err != nil {
			return err
		}
	}
	return nil
}

// claimOf returns the claim of a pod's volume, or nil if it has none.
func (b *binder) claimOf(pod *corev1.Pod, v *corev1.Volume) (*corev1.PersistentVolumeClaim, error) {
	name := pod.Name + "-" + v.Name
	if v.PersistentVolumeClaim != nil {
		name = v.PersistentVolumeClaim.ClaimName
	}
	object, exists, err := b.claims.GetByKey(pod.Namespace + "/" + name)
	if err != nil || !exists {
		return nil, err
	}
	return object.(*corev1.PersistentVolumeClaim), nil
}

// free returns a copy of a free volume for the claim that the node can use, or nil if there is none.
func (b *binder) free(c *corev1.PersistentVolumeClaim, node *corev1.Node) (*corev1.PersistentVolume, error) {
	if _, selected := c.Annotations[selectedNode]; selected {
		return nil, nil
	}
	var list []*corev1.PersistentVolume
	for _, object := range b.volumes.List() {
		list = append(list, object.(*corev1.PersistentVolume))
	}
	v, err := volume.FindMatchingVolume(c, list, node, nil, true, true)
	if v == nil || err != nil {
		return nil, err
	}
	return v.DeepCopy(), nil
}
