// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations that the volume controller and the scheduler set on claims.
const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
)

// demand holds the constraints of a pod's volumes.
type demand struct {
	storage *storage
	// never lists the reasons why no node accepts the pod, such as a missing claim.
	never []string
	// places restrict the nodes that accept the pod.
	places []place
	// volumes lists the volumes that count against the attach limits of nodes.
	volumes []wantedVolume
	// exclusive lists the pod's claims with the access mode ReadWriteOncePod.
	exclusive []types.NamespacedName
	// once is the name of a claim of that kind that copies of the pod share; "" if there is none.
	once string
	// unbound lists the names of the claims that copies share and whose volume does not exist yet:
	// the copies must run where the first one is placed.
	unbound []string
	// unevaluated lists the constraints on the pod's volumes that are not evaluated.
	unevaluated []string
}

// wantedVolume is a volume that a pod needs attached to its node.
type wantedVolume struct {
	volumeID
	// own is true if each copy of the pod brings another such volume.
	own bool
}

// place restricts the nodes of a pod because of a volume.
type place struct {
	why    string
	admits func(n *corev1.Node) bool
	// key is equal for places that admit the same nodes for the same reason.
	key string
	// first is true if only the first copy must be there: afterwards, the volume exists and may be
	// usable on more nodes.
	first bool
}

// usage describes how a pod uses a claim.
type usage struct {
	// name is the name of the claim or, if each copy of the pod has its own claim, of the volume.
	name string
	key  types.NamespacedName
	own  bool
}

// demandOf returns the constraints of a pod's volumes, or nil if there are none. If `again` is set,
// the pod is one that its controller creates again, so that each of its ephemeral volumes is a new
// one. It returns nil if s is nil.
func (s *storage) demandOf(object *corev1.Pod, again bool) *demand {
	if s == nil || !slices.ContainsFunc(object.Spec.Volumes, attached) {
		return nil
	}
	if again && s.demands[object] != nil {
		return s.demands[object]
	}
	d := &demand{storage: s}
	for i := range object.Spec.Volumes {
		v := &object.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			name := v.PersistentVolumeClaim.ClaimName
			u := usage{name: "claim " + name, key: keyOfClaim(object.Namespace, name)}
			if ofStatefulSet(object, name) {
				u.name, u.own = "claim of volume "+v.Name, true
			}
			d.addClaim(u)
		case v.Ephemeral != nil:
			d.addEphemeral(object, v, again)
		case attached(*v):
			d.lacks(inTreeDisks)
		}
	}
	if again {
		s.demands[object] = d
	}
	return d
}

// ofStatefulSet reports whether the claim is one that a StatefulSet has created for the pod.
func ofStatefulSet(object *corev1.Pod, claim string) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && owner.Kind == "StatefulSet" && strings.HasSuffix(claim, "-"+object.Name)
}

// lacks adds names of constraints that are not evaluated.
func (d *demand) lacks(what ...string) { d.unevaluated = appendNew(d.unevaluated, what) }

// unread reports whether the user is not allowed to list a resource. The constraints on volumes are
// then not fully evaluated.
func (d *demand) unread(resource string) bool {
	if !d.storage.unread.Has(resource) {
		return false
	}
	d.lacks(persistentVolumes + " (no right to list " + resource + ")")
	return true
}

// addClaim adds the constraints of a claim that should exist.
func (d *demand) addClaim(u usage) {
	if of := d.storage.source.Namespace; of != "" && of != u.key.Namespace {
		d.lacks(persistentVolumes)
		return
	}
	if d.unread("persistentvolumeclaims") {
		return
	}
	claim := d.storage.claims[u.key]
	if claim == nil {
		d.never = append(d.never, u.name+" does not exist")
		return
	}
	if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		d.exclusive = append(d.exclusive, u.key)
		if !u.own {
			d.once = u.name
		}
	}
	_, completed := claim.Annotations[bindCompleted]
	switch {
	case !claim.DeletionTimestamp.IsZero():
		d.never = append(d.never, u.name+" is being deleted")
	case claim.Status.Phase == corev1.ClaimLost:
		d.never = append(d.never, u.name+" has lost its volume")
	case claim.Spec.VolumeName == "":
		d.addUnbound(u, claim)
	case !completed:
		d.never = append(d.never, u.name+" is not bound")
	case d.unread("persistentvolumes"):
	case d.storage.volumes[claim.Spec.VolumeName] == nil:
		d.never = append(d.never, u.name+" has lost its volume")
	default:
		d.addBound(u, d.storage.volumes[claim.Spec.VolumeName])
	}
}

// addEphemeral adds the constraints of a volume whose claim is created and deleted with the pod. If
// the claim template has a name, the volume stands for claims of a StatefulSet, whose names are this
// name and an ordinal.
func (d *demand) addEphemeral(object *corev1.Pod, v *corev1.Volume, again bool) {
	u := usage{name: "claim of volume " + v.Name, key: keyOfClaim(object.Namespace, object.Name+"-"+v.Name), own: true}
	if existing := d.storage.claims[u.key]; existing != nil && !again {
		if !metav1.IsControlledBy(existing, object) {
			d.never = append(d.never, u.name+" belongs to another object")
			return
		}
		d.addClaim(u)
		d.exclusive = slices.DeleteFunc(d.exclusive, func(key types.NamespacedName) bool { return key == u.key })
		return
	}
	template := v.Ephemeral.VolumeClaimTemplate
	if template == nil {
		return
	}
	before := *d
	d.addNew(u, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: u.key.Namespace, Name: u.key.Name, Annotations: template.Annotations, Labels: template.Labels}, Spec: template.Spec})
	if template.Name != "" && (d.unread("persistentvolumeclaims") || d.storage.hasUnused(u.key.Namespace, template.Name)) {
		// The next copies use these claims instead of new ones, so they may run elsewhere, and their
		// volumes may be of other drivers, or still attached.
		d.lacks("existing claims of volume " + v.Name)
		d.never, d.places, d.volumes = before.never, before.places, before.volumes
	}
}

// hasUnused reports whether a namespace has a claim with the given prefix and an ordinal that no
// pod on a node uses.
func (s *storage) hasUnused(namespace, prefix string) bool {
	for key := range s.claims {
		ordinal, found := strings.CutPrefix(key.Name, prefix)
		if _, err := strconv.Atoi(ordinal); found && err == nil && key.Namespace == namespace && len(s.usersOf(key)) == 0 {
			return true
		}
	}
	return false
}

// addBound adds the constraints of a claim that is bound to a volume.
func (d *demand) addBound(u usage, pv *corev1.PersistentVolume) {
	elsewhere := u.name + ": its volume is elsewhere"
	if zones := newZones(pv.Labels); len(zones) > 0 {
		d.places = append(d.places, place{why: elsewhere, admits: zones.admit, key: fmt.Sprint(zones)})
	}
	if isMigrated(pv) {
		// The scheduler evaluates the volume of the CSI driver that has replaced the in-tree driver.
		d.lacks(inTreeDisks)
		return
	}
	if affinity := pv.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		d.places = append(d.places, place{why: elsewhere, admits: admittedBy(affinity.Required), key: affinity.Required.String()})
	}
	if csi := pv.Spec.CSI; csi != nil {
		d.addVolume(volumeID{csi.Driver, csi.VolumeHandle}, u.own)
	}
}

// addUnbound adds the constraints of an existing claim without a volume.
func (d *demand) addUnbound(u usage, claim *corev1.PersistentVolumeClaim) {
	name := classOf(claim.Annotations, claim.Spec.StorageClassName)
	if name != "" && d.unread("storageclasses") {
		return
	}
	class := d.storage.classes[name]
	switch {
	case name != "" && class == nil:
		d.never = append(d.never, fmt.Sprintf("%s: no StorageClass %s", u.name, name))
	case class == nil || !waits(class):
		d.never = append(d.never, u.name+" is not bound")
	default:
		if !u.own {
			d.unbound = append(d.unbound, u.name)
		}
		d.addProvisioned(u, claim, class)
	}
}

// addNew adds the constraints of a claim that will be created with a copy of the pod.
func (d *demand) addNew(u usage, claim *corev1.PersistentVolumeClaim) {
	if d.unread("storageclasses") {
		return
	}
	name, class := classOf(claim.Annotations, claim.Spec.StorageClassName), d.storage.standard
	if name != "" || claim.Spec.StorageClassName != nil {
		class = d.storage.classes[name]
	}
	switch {
	case class == nil && name != "":
		d.never = append(d.never, fmt.Sprintf("%s: no StorageClass %s", u.name, name))
	case class == nil && (d.unread("persistentvolumes") || len(d.storage.free[""]) > 0):
		d.lacks("volumes without a StorageClass")
	case class == nil:
		d.never = append(d.never, u.name+" has no StorageClass")
	case waits(class):
		d.addProvisioned(u, claim, class)
	default:
		// The volume is created before the copy is placed, and its place is not known before.
		d.lacks("volumes of StorageClass " + class.Name)
		d.addVolume(volumeID{class.Provisioner, u.key.String()}, u.own)
	}
}

// waits reports whether the scheduler chooses the node of a pod before its volumes are bound.
func waits(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// addProvisioned adds the constraints of a claim whose volume is bound or created on the node that
// the scheduler chooses.
func (d *demand) addProvisioned(u usage, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) {
	if node, selected := claim.Annotations[selectedNode]; selected {
		d.places = append(d.places, place{why: u.name + " is for another node", admits: func(n *corev1.Node) bool { return n.Name == node }, key: node, first: !u.own})
	}
	d.unread("persistentvolumes")
	static := slices.DeleteFunc(slices.Clone(d.storage.free[class.Name]), func(pv *corev1.PersistentVolume) bool { return !satisfies(pv, claim) })
	if len(static) > 0 {
		d.lacks("free volumes of StorageClass " + class.Name)
	}
	provisions := class.Provisioner != "" && class.Provisioner != "kubernetes.io/no-provisioner"
	if !provisions && d.storage.unread.Has("persistentvolumes") {
		return
	}
	why, key := "topology of StorageClass "+class.Name, class.Name
	if !provisions {
		why = "no free volume of StorageClass " + class.Name
	}
	if len(static) > 0 {
		key += "\x00" + u.key.String()
	}
	d.places = append(d.places, place{why: why, key: key, admits: func(n *corev1.Node) bool {
		return provisions && allows(class.AllowedTopologies, n) ||
			slices.ContainsFunc(static, func(pv *corev1.PersistentVolume) bool { return usableOn(pv, n) })
	}})
	switch {
	case !provisions:
		return
	case strings.HasPrefix(class.Provisioner, "kubernetes.io/"):
		d.lacks(inTreeDisks)
		return
	case d.unread("csidrivers"):
	case tracksCapacity(d.storage.drivers[class.Provisioner]):
		d.lacks("storage capacity of " + class.Provisioner)
	}
	d.addVolume(volumeID{class.Provisioner, u.key.String()}, u.own)
}

// addVolume adds a volume that must be attached to the node of the pod.
func (d *demand) addVolume(id volumeID, own bool) {
	d.volumes = append(d.volumes, wantedVolume{id, own})
	d.unread("csinodes")
	d.unread("volumeattachments")
	if driver := d.storage.drivers[id.driver]; driver != nil && driver.Spec.PreventPodSchedulingIfMissing != nil && *driver.Spec.PreventPodSchedulingIfMissing && !d.storage.unread.Has("csinodes") {
		d.places = append(d.places, place{why: "no CSI driver " + id.driver, key: id.driver, admits: func(n *corev1.Node) bool {
			return d.storage.isNew(n) || hasDriver(d.storage.csiNodes[n.Name], id.driver)
		}})
	}
}
