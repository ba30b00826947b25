// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Volumes holds the storage objects of a cluster. They determine on which nodes pods with volumes
// can run.
type Volumes struct {
	// Namespace is the namespace of the Claims. If it is empty, Claims has the claims of all
	// namespaces.
	Namespace string
	Claims    []*corev1.PersistentVolumeClaim
	Volumes   []*corev1.PersistentVolume
	Classes   []*storagev1.StorageClass
	Drivers   []*storagev1.CSIDriver
	CSINodes  []*storagev1.CSINode
	// Attachments lists the volumes that are attached to nodes, including volumes of deleted pods.
	Attachments []*storagev1.VolumeAttachment
	// Unread lists the resources that the user is not allowed to list, such as "persistentvolumes".
	Unread []string
}

// Names of constraints on volumes that are not evaluated.
const (
	persistentVolumes = "persistent volumes"
	inTreeDisks       = "disks of in-tree drivers"
	newAttachLimits   = "attach limits of new nodes"
)

// volumeID identifies a volume of a CSI driver. Each volume counts only once against the attach
// limit of a node, even if several pods use it.
type volumeID struct{ driver, handle string }

// storage indexes the storage objects of a cluster.
type storage struct {
	source  *Volumes
	nodes   []*node
	unread  sets.Set[string]
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	// bound maps claims to the volumes that are bound to them, including claims of namespaces that
	// were not read.
	bound map[types.NamespacedName]*corev1.PersistentVolume
	// free maps the names of StorageClasses to the volumes that are not bound to a claim.
	free    map[string][]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
	// standard is the default StorageClass, or nil if there is none.
	standard *storagev1.StorageClass
	drivers  map[string]*storagev1.CSIDriver
	csiNodes map[string]*storagev1.CSINode
	// limited contains the drivers that have an attach limit on any node.
	limited sets.Set[string]
	// attachments maps nodes to their VolumeAttachments.
	attachments map[string][]*storagev1.VolumeAttachment

	// users maps claims to the nodes of the pods that use them; nil until it is needed.
	users map[types.NamespacedName][]*node
	// used caches the volumes on each node.
	used map[*node]*attachedVolumes
	// demands caches the constraints of pods that are placed again; see [storage.demandOf].
	demands map[*corev1.Pod]*demand
}

// objects returns the storage objects, or nil if s is nil.
func (s *storage) objects() *Volumes {
	if s == nil {
		return nil
	}
	return s.source
}

func newStorage(v *Volumes, list []*node) *storage {
	s := &storage{
		source: v, nodes: list, unread: sets.New(v.Unread...), limited: sets.Set[string]{},
		claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{},
		bound: map[types.NamespacedName]*corev1.PersistentVolume{}, free: map[string][]*corev1.PersistentVolume{},
		classes: map[string]*storagev1.StorageClass{}, drivers: map[string]*storagev1.CSIDriver{}, csiNodes: map[string]*storagev1.CSINode{},
		attachments: map[string][]*storagev1.VolumeAttachment{}, used: map[*node]*attachedVolumes{}, demands: map[*corev1.Pod]*demand{},
	}
	for _, claim := range v.Claims {
		s.claims[keyOfClaim(claim.Namespace, claim.Name)] = claim
	}
	for _, pv := range v.Volumes {
		s.volumes[pv.Name] = pv
		switch of := pv.Spec.ClaimRef; {
		case pv.Status.Phase == corev1.VolumeBound && of != nil:
			s.bound[keyOfClaim(of.Namespace, of.Name)] = pv
		case pv.DeletionTimestamp.IsZero() && (pv.Status.Phase == corev1.VolumeAvailable || of != nil && of.UID == ""):
			class := classOf(pv.Annotations, &pv.Spec.StorageClassName)
			s.free[class] = append(s.free[class], pv)
		}
	}
	for _, class := range v.Classes {
		s.classes[class.Name] = class
		if isStandard(class) && (s.standard == nil || newer(class, s.standard)) {
			s.standard = class
		}
	}
	for _, driver := range v.Drivers {
		s.drivers[driver.Name] = driver
	}
	for _, n := range v.CSINodes {
		s.csiNodes[n.Name] = n
		for driver := range limitsOf(n) {
			s.limited.Insert(driver)
		}
	}
	for _, a := range v.Attachments {
		s.attachments[a.Spec.NodeName] = append(s.attachments[a.Spec.NodeName], a)
	}
	return s
}

func keyOfClaim(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// classOf returns the name of the StorageClass of a claim or a volume, or "" if it has none.
func classOf(annotations map[string]string, field *string) string {
	if class, has := annotations[corev1.BetaStorageClassAnnotation]; has {
		return class
	}
	if field == nil {
		return ""
	}
	return *field
}

// isStandard reports whether new claims without a StorageClass get this one.
func isStandard(class *storagev1.StorageClass) bool {
	return class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		class.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// newer reports whether the API server prefers the default StorageClass a to b.
func newer(a, b *storagev1.StorageClass) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// limitsOf returns the attach limit of each driver that has one on a node.
func limitsOf(n *storagev1.CSINode) map[string]int64 {
	limits := map[string]int64{}
	if n == nil {
		return limits
	}
	for _, driver := range n.Spec.Drivers {
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			limits[driver.Name] = int64(*driver.Allocatable.Count)
		}
	}
	return limits
}

// usersOf returns the nodes of the pods that use a claim.
func (s *storage) usersOf(claim types.NamespacedName) []*node {
	if s.users == nil {
		s.users = map[types.NamespacedName][]*node{}
		for _, n := range s.nodes {
			for _, p := range n.pods {
				for i := range p.object.Spec.Volumes {
					if of := p.object.Spec.Volumes[i].PersistentVolumeClaim; of != nil {
						key := keyOfClaim(p.object.Namespace, of.ClaimName)
						s.users[key] = append(s.users[key], n)
					}
				}
			}
		}
	}
	return s.users[claim]
}

// isNew reports whether a node does not exist yet, so that its drivers are not known.
func (s *storage) isNew(n *corev1.Node) bool { return n.UID == "" && s.csiNodes[n.Name] == nil }

// unevaluatedOf is like unevaluated for a single pod of a class, whose volumes and devices may
// differ from those of the other pods of the class. See [storage.demandOf] for `again`.
func (c *classes) unevaluatedOf(of *class, object *corev1.Pod, again bool) []string {
	list := c.unevaluated(of)
	if c.storage == nil && c.devices == nil {
		return list
	}
	list = slices.DeleteFunc(slices.Clone(list), func(what string) bool {
		return what == persistentVolumes && c.storage != nil || what == resourceClaims && c.devices != nil && !again
	})
	if d := c.storage.demandOf(object, again); d != nil {
		list = appendNew(list, d.unevaluated)
	}
	if d := c.devices.demandOf(object); d != nil && !again {
		list = appendNew(list, d.unevaluated)
	}
	return list
}

// HasVolumes reports whether a pod has volumes that can restrict its nodes.
func HasVolumes(object *corev1.Pod) bool { return slices.ContainsFunc(object.Spec.Volumes, attached) }
