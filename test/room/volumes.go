// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// The CSI drivers of the worlds: volumes of disks are mostly in one zone, and shares are everywhere.
const (
	disks  = "disk.example.com"
	shares = "share.example.com"
)

// The StorageClasses of the worlds. All but now wait for the first pod that uses a claim.
const (
	classWait   = "wait"
	classZones  = "wait-zones" // with allowedTopologies
	classShares = "shares"
	classLocal  = "local" // only for volumes that exist already
	classNow    = "now"
)

const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
)

// firstOrdinal is the ordinal of the first copy, if copies are pods of a StatefulSet. Running pods
// have lower ones.
const firstOrdinal = 5

// addVolumes gives most worlds storage objects, and pods that use them. It draws from numbers of its
// own, so that the rest of a world does not depend on it.
func (w *world) addVolumes() {
	w.Rand = rand.New(rand.NewPCG(w.seed, 4))
	if !w.chance(70) {
		return
	}
	w.addDrivers()
	w.addClasses()
	byOwner := map[types.UID][]*corev1.Pod{}
	var owners []types.UID
	for _, pod := range w.pods {
		owner := pod.OwnerReferences[0].UID
		if byOwner[owner] == nil {
			owners = append(owners, owner)
		}
		byOwner[owner] = append(byOwner[owner], pod)
	}
	for _, owner := range owners {
		w.useVolumes(byOwner[owner])
	}
	w.wantVolumes()
	w.addAttachments()
}

func (w *world) addDrivers() {
	for _, name := range []string{disks, shares} {
		if w.chance(60) {
			d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}}
			if w.chance(25) {
				d.Spec.PreventPodSchedulingIfMissing = new(true)
			}
			if w.chance(2) {
				d.Spec.StorageCapacity = new(true) // There is no CSIStorageCapacity, so that the driver creates no volumes.
			}
			w.volumes.Drivers = append(w.volumes.Drivers, d)
		}
	}
	for _, node := range w.nodes {
		if w.chance(5) {
			continue
		}
		n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		for _, name := range []string{disks, shares} {
			if w.chance(10) {
				continue
			}
			d := storagev1.CSINodeDriver{Name: name, NodeID: node.Name}
			if w.chance(60) {
				d.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(w.IntN(7)))}
			}
			n.Spec.Drivers = append(n.Spec.Drivers, d)
		}
		w.volumes.CSINodes = append(w.volumes.CSINodes, n)
	}
}

func (w *world) addClasses() {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name, driver string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver, VolumeBindingMode: &mode}
		w.volumes.Classes = append(w.volumes.Classes, c)
		return c
	}
	class(classWait, disks, wait).Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	class(classShares, shares, wait)
	class(classLocal, "kubernetes.io/no-provisioner", wait)
	class(classNow, disks, now)
	zones := class(classZones, disks, wait)
	for range 1 + w.IntN(2) {
		of := []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"a", "b", "c"}[:1+w.IntN(2)]}}
		if w.chance(30) {
			of[0].Values = []string{"c"}
		}
		if w.chance(15) {
			of = append(of, corev1.TopologySelectorLabelRequirement{Key: "disk", Values: []string{"ssd"}})
		}
		if term := (corev1.TopologySelectorTerm{MatchLabelExpressions: of}); len(zones.AllowedTopologies) == 0 || term.String() != zones.AllowedTopologies[0].String() {
			zones.AllowedTopologies = append(zones.AllowedTopologies, term)
		}
	}
}

// claimSpec returns the spec of a claim with a StorageClass.
func claimSpec(class string, mode corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// claim adds a claim without a volume.
func (w *world) claim(namespace, name string, spec corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name)}, Spec: spec}
	c.Status.Phase = corev1.ClaimPending
	w.volumes.Claims = append(w.volumes.Claims, c)
	return c
}

// volume adds a free volume for claims of the given spec.
func (w *world) volume(name, driver string, of *corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolume {
	v := newVolume(name, driver, of)
	w.volumes.Volumes = append(w.volumes.Volumes, v)
	return v
}

func newVolume(name, driver string, of *corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: of.Resources.Requests, AccessModes: of.AccessModes, StorageClassName: *of.StorageClassName,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle-" + name}},
	}}
	v.Status.Phase = corev1.VolumeAvailable
	return v
}

// bind binds a claim to a volume.
func bind(c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
	v.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	v.Status.Phase = corev1.VolumeBound
	c.Spec.VolumeName, c.Status.Phase = v.Name, corev1.ClaimBound
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, bindCompleted, "yes")
}

// bound adds a claim with a volume that the given node can mostly use.
func (w *world) bound(namespace, name, driver string, mode corev1.PersistentVolumeAccessMode, near *corev1.Node) *corev1.PersistentVolumeClaim {
	class := classWait
	if driver == shares {
		class = classShares
	}
	c := w.claim(namespace, name, claimSpec(class, mode))
	v := w.volume("pv-"+namespace+"-"+name, driver, &c.Spec)
	bind(c, v)
	w.locate(v, near)
	return c
}

// locate restricts most volumes to the zone or the node of a node.
func (w *world) locate(v *corev1.PersistentVolume, near *corev1.Node) {
	zone, zoned := near.Labels[corev1.LabelTopologyZone]
	switch n := w.IntN(20); {
	case v.Spec.CSI.Driver == shares && n < 16 || n == 0:
	case n < 3:
		v.Spec.NodeAffinity = onlyOn(corev1.LabelHostname, near.Name)
	case n < 5 && zoned:
		v.Labels = map[string]string{oneOf(w, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone): oneOf(w, zone, zone, "a__"+zone)}
	case zoned:
		v.Spec.NodeAffinity = onlyOn(corev1.LabelTopologyZone, zone)
	}
}

func onlyOn(key string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}}
}

// mount gives a pod a volume of a claim.
func mount(pod *corev1.Pod, claim string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("volume-", len(pod.Spec.Volumes)), VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}

// nodeOf returns the node of a running pod.
func (w *world) nodeOf(pod *corev1.Pod) *corev1.Node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *corev1.Node) bool { return n.Name == pod.Spec.NodeName })]
}

// useVolumes gives the running pods of a workload volumes.
func (w *world) useVolumes(pods []*corev1.Pod) {
	app, namespace := pods[0].Labels["app"], pods[0].Namespace
	switch n := w.IntN(10); {
	case app == "agent" && n < 8:
	case n < 4:
		own, ephemeral := 1+w.IntN(2), w.chance(30)
		for _, pod := range pods {
			for i := range own {
				if ephemeral {
					w.ephemeral(pod, "", claimSpec(classWait, corev1.ReadWriteOnce))
					c := w.bound(namespace, fmt.Sprintf("%s-volume-%d", pod.Name, i), disks, corev1.ReadWriteOnce, w.nodeOf(pod))
					c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)}}
					continue
				}
				name := fmt.Sprintf("data-%s-%d", pod.Name, i)
				w.bound(namespace, name, disks, corev1.ReadWriteOnce, w.nodeOf(pod))
				mount(pod, name)
			}
		}
	case n < 6:
		w.bound(namespace, "shared-"+app, oneOf(w, disks, shares), corev1.ReadWriteMany, w.nodeOf(pods[0]))
		for _, pod := range pods {
			mount(pod, "shared-"+app)
		}
	case n < 8:
		w.bound(namespace, "shared-"+app, disks, oneOf(w, corev1.ReadWriteOnce, corev1.ReadWriteOncePod), w.nodeOf(pods[0]))
		mount(pods[0], "shared-"+app)
	}
}

// ephemeral gives a pod a volume whose claim is created with it. If prefix is not empty, the claim is
// that of a StatefulSet, and its name ends with the ordinal of the pod.
func (w *world) ephemeral(pod *corev1.Pod, prefix string, spec corev1.PersistentVolumeClaimSpec) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("volume-", len(pod.Spec.Volumes)), VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: prefix}, Spec: spec}},
	}})
}

// addAttachments attaches some of the volumes to nodes, as volumes of deleted pods still are.
func (w *world) addAttachments() {
	v := w.volumes
	for i := range w.IntN(4) {
		left := w.bound("other", fmt.Sprint("left-", i), oneOf(w, disks, disks, shares), corev1.ReadWriteOnce, oneOf(w, w.nodes...))
		w.attach(left.Spec.VolumeName, oneOf(w, w.nodes...).Name)
	}
	for _, pv := range v.Volumes {
		if w.chance(20) {
			w.attach(pv.Name, oneOf(w, w.nodes...).Name)
		}
	}
	if w.chance(30) {
		// The plugin reads only the claims of the pod's namespace.
		v.Namespace = "shop"
	}
}

func (w *world) attach(volume, node string) {
	pv := w.volumes.Volumes[slices.IndexFunc(w.volumes.Volumes, func(v *corev1.PersistentVolume) bool { return v.Name == volume })]
	w.volumes.Attachments = append(w.volumes.Attachments, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("attachment-", len(w.volumes.Attachments))},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: pv.Spec.CSI.Driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}},
	})
}

// seen returns the storage objects that the plugin reads.
func (w *world) seen() *capacity.Volumes {
	v := *w.volumes
	if v.Namespace != "" {
		v.Claims = slices.DeleteFunc(slices.Clone(v.Claims), func(c *corev1.PersistentVolumeClaim) bool { return c.Namespace != v.Namespace })
	}
	return &v
}
