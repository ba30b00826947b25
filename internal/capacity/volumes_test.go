// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// driver is the CSI driver of the volumes in these tests.
const driver = "disk.example.com"

// threeNodes returns nodes in zones a, a and b. Each has 4 CPUs.
func threeNodes() []*corev1.Node {
	var list []*corev1.Node
	for _, n := range []struct{ name, zone string }{{"a1", "a"}, {"a2", "a"}, {"b1", "b"}} {
		object := aNode(n.name, "cpu", "4", "pods", "10")
		object.UID = types.UID(n.name)
		object.Labels[corev1.LabelTopologyZone] = n.zone
		list = append(list, &object)
	}
	return list
}

// aClaim returns a claim in the namespace of [aPod], bound to the volume unless its name is empty.
func aClaim(name, volume, class string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	c.Spec.StorageClassName, c.Spec.VolumeName = &class, volume
	c.Spec.Resources.Requests = list("storage", "1Gi")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if volume != "" {
		c.Annotations = map[string]string{bindCompleted: "yes"}
	}
	return c
}

// aVolume returns a volume that is bound to the claim, or free if the name of the claim is empty.
// Only nodes of the zone can use it, unless zone is empty.
func aVolume(name, claim, zone string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
	v.Spec.Capacity = list("storage", "1Gi")
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Status.Phase = corev1.VolumeAvailable
	if claim != "" {
		v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Namespace: "shop", Name: claim, UID: "x"}, corev1.VolumeBound
	}
	if zone != "" {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return v
}

func aStorageClass(name string, mode storagev1.VolumeBindingMode, zones ...string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver, VolumeBindingMode: &mode}
	if len(zones) > 0 {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}}}}
	}
	return c
}

func aCSINode(name string, limit int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}},
	}}
}

// using returns a pod with volumes of the claims, and an ephemeral volume for each StorageClass.
func using(p corev1.Pod, claims, classes []string) *corev1.Pod {
	for _, name := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	for i, class := range classes {
		template := &corev1.PersistentVolumeClaimTemplate{Spec: aClaim("", "", class).Spec}
		if class == "" {
			template.Spec.StorageClassName = nil
		}
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("own-", i), VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}})
	}
	return &p
}

// volumeFit is a case of TestFitVolumes.
type volumeFit struct {
	name            string
	claims, classes []string // of the pod
	change          func(v *Volumes)
	running         []*corev1.Pod
	copies          int64
	limited         []Count
	refused         []Count
	atMost          []string
}

const (
	wait = storagev1.VolumeBindingWaitForFirstConsumer
	now  = storagev1.VolumeBindingImmediate
)

func volumeFits() []volumeFit {
	cpu := func(nodes int) []Count { return []Count{{What: "cpu", Nodes: nodes}} }
	none := func(why string) []Count { return []Count{{What: why, Nodes: 3}} }
	elsewhere := []Count{{What: "claim data: its volume is elsewhere", Nodes: 1}}
	one := []string{"data"}
	return []volumeFit{
		{name: "a bound volume of a zone", claims: one, copies: 8, limited: cpu(2), refused: elsewhere},
		{name: "the zone as a label", claims: one, copies: 8, limited: cpu(2), refused: elsewhere, change: func(v *Volumes) {
			v.Volumes[0].Spec.NodeAffinity, v.Volumes[0].Labels = nil, map[string]string{corev1.LabelFailureDomainBetaZone: "a__c"}
		}},
		{name: "a missing claim", claims: []string{"none"}, refused: none("claim none does not exist")},
		{name: "a claim that is being deleted", claims: one, refused: none("claim data is being deleted"), change: func(v *Volumes) { v.Claims[0].DeletionTimestamp = new(metav1.Now()) }},
		{name: "a lost volume", claims: one, refused: none("claim data has lost its volume"), change: func(v *Volumes) { v.Volumes = nil }},
		{name: "not bound completely", claims: one, refused: none("claim data is not bound"), change: func(v *Volumes) { v.Claims[0].Annotations = nil }},
		{name: "no right to list volumes", claims: one, copies: 12, limited: cpu(3), atMost: []string{"persistent volumes (no right to list persistentvolumes)"}, change: func(v *Volumes) {
			v.Volumes, v.Unread = nil, []string{"persistentvolumes"}
		}},
		{name: "no right to list claims", claims: one, copies: 12, limited: cpu(3), atMost: []string{"persistent volumes (no right to list persistentvolumeclaims)"}, change: func(v *Volumes) {
			v.Claims, v.Unread = nil, []string{"persistentvolumeclaims"}
		}},
		{name: "ReadWriteOncePod", claims: one, copies: 1, limited: []Count{{What: "ReadWriteOncePod claim data", Nodes: 2}}, refused: elsewhere, change: oncePod},
		{name: "ReadWriteOncePod in use", claims: one, change: oncePod, running: []*corev1.Pod{using(aPod("other", "", "", "b1"), one, nil)},
			refused: []Count{{What: "ReadWriteOncePod claim in use", Nodes: 2}, elsewhere[0]}},
		{name: "unbound, and it waits for the pod", claims: []string{"later"}, copies: 8, limited: cpu(2), refused: []Count{{What: "topology of StorageClass wait-a", Nodes: 1}}, atMost: []string{"unbound claim later"}},
		{name: "unbound, and a node is selected", claims: []string{"later"}, copies: 8, limited: cpu(2), atMost: []string{"unbound claim later"},
			refused: []Count{{What: "topology of StorageClass wait-a", Nodes: 1}}, change: func(v *Volumes) { v.Claims[1].Annotations = map[string]string{selectedNode: "a2"} }},
		{name: "unbound, and the selected node is full", claims: []string{"later"}, running: []*corev1.Pod{new(aPod("other", "", "", "a2", "cpu", "4"))},
			refused: []Count{{What: "claim later is for another node", Nodes: 1}, {What: "not enough cpu", Nodes: 1}, {What: "topology of StorageClass wait-a", Nodes: 1}},
			change:  func(v *Volumes) { v.Claims[1].Annotations = map[string]string{selectedNode: "a2"} }},
		{name: "unbound for one pod, and a node is selected", claims: []string{"later"}, copies: 1, limited: []Count{{What: "ReadWriteOncePod claim later", Nodes: 1}},
			refused: []Count{{What: "claim later is for another node", Nodes: 1}, {What: "topology of StorageClass wait-a", Nodes: 1}},
			change: func(v *Volumes) {
				v.Claims[1].Annotations = map[string]string{selectedNode: "a2"}
				v.Claims[1].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			}},
		{name: "unbound, and it should be bound", claims: []string{"soon"}, refused: none("claim soon is not bound")},
		{name: "no StorageClass of the name", claims: []string{"later"}, refused: none("claim later: no StorageClass wait-a"), change: func(v *Volumes) { v.Classes = nil }},
		{name: "no right to list StorageClasses", claims: []string{"later"}, copies: 12, limited: cpu(3), atMost: []string{"persistent volumes (no right to list storageclasses)"}, change: func(v *Volumes) {
			v.Classes, v.Unread = nil, []string{"storageclasses"}
		}},
		{name: "free volumes only", claims: []string{"later"}, copies: 4, limited: cpu(1), refused: []Count{{What: "no free volume of StorageClass wait-a", Nodes: 2}},
			atMost: []string{"free volumes of StorageClass wait-a", "unbound claim later"}, change: func(v *Volumes) {
				v.Classes[0].Provisioner, v.Classes[0].AllowedTopologies = "kubernetes.io/no-provisioner", nil
				v.Volumes = append(v.Volumes, aVolume("free", "", "b"), aVolume("small", "", "a"))
				v.Volumes[1].Spec.StorageClassName, v.Volumes[2].Spec.StorageClassName = "wait-a", "wait-a"
				v.Volumes[2].Spec.Capacity = list("storage", "1Mi")
			}},
		{name: "storage capacity", classes: []string{"wait"}, copies: 12, limited: cpu(3), atMost: []string{"storage capacity of " + driver}, change: func(v *Volumes) {
			v.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}}
		}},
		{name: "a driver that must run on the node", claims: one, copies: 4, limited: cpu(1), refused: []Count{{What: "claim data: its volume is elsewhere and no CSI driver " + driver, Nodes: 1}, {What: "no CSI driver " + driver, Nodes: 1}}, change: func(v *Volumes) {
			v.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: new(true)}}}
			v.CSINodes = []*storagev1.CSINode{aCSINode("a1", 5)}
		}},
		{name: "new volumes without a StorageClass", classes: []string{""}, refused: none("claim of volume own-0 has no StorageClass")},
		{name: "new volumes of the default StorageClass", classes: []string{""}, copies: 8, limited: cpu(2), refused: []Count{{What: "topology of StorageClass wait-a", Nodes: 1}}, change: func(v *Volumes) {
			v.Classes[0].Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}},
		{name: "new volumes that are bound at once", classes: []string{"now"}, copies: 12, limited: cpu(3), atMost: []string{"volumes of StorageClass now"}},
		{name: "in-tree volume", claims: one, copies: 12, limited: cpu(3), atMost: []string{"disks of in-tree drivers"}, change: func(v *Volumes) {
			v.Volumes[0].Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}
		}},
	}
}

func oncePod(v *Volumes) {
	v.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
}

// TestFitVolumes checks how many copies of a pod with volumes fit.
func TestFitVolumes(t *testing.T) {
	for _, c := range append(volumeFits(), attachFits()...) {
		t.Run(c.name, func(t *testing.T) {
			v := &Volumes{
				Claims:  []*corev1.PersistentVolumeClaim{aClaim("data", "pv", "gone"), aClaim("later", "", "wait-a"), aClaim("soon", "", "now")},
				Volumes: []*corev1.PersistentVolume{aVolume("pv", "data", "a")},
				Classes: []*storagev1.StorageClass{aStorageClass("wait-a", wait, "a"), aStorageClass("wait", wait), aStorageClass("now", now, "a")},
			}
			if c.change != nil {
				c.change(v)
			}
			f := New(threeNodes(), c.running).WithVolumes(v).Members([]string{"a1", "a2", "b1"}).Fit(using(aPod("copy", "", "", "", "cpu", "1", "pods", "1"), c.claims, c.classes))
			equal(t, "copies", c.copies, f.Copies)
			equal(t, "limited by", c.limited, f.LimitedBy)
			equal(t, "refused", c.refused, f.Refused)
			equal(t, "at most", c.atMost, f.AtMost)
		})
	}
}

// attachFits are cases of attach limits.
func attachFits() []volumeFit {
	slots := "attachable volumes of " + driver
	limits := func(count ...int32) func(v *Volumes) {
		return func(v *Volumes) {
			for i, name := range []string{"a1", "a2", "b1"} {
				v.CSINodes = append(v.CSINodes, aCSINode(name, count[i]))
			}
		}
	}
	elsewhere := Count{What: "claim data: its volume is elsewhere", Nodes: 1}
	return []volumeFit{
		{name: "copies with a volume each", classes: []string{"wait"}, change: limits(1, 3, 5), copies: 8, limited: []Count{{What: slots, Nodes: 2}, {What: "cpu", Nodes: 1}}},
		{name: "copies with two volumes each", classes: []string{"wait", "wait"}, change: limits(2, 5, 9), copies: 7, limited: []Count{{What: slots, Nodes: 2}, {What: "cpu", Nodes: 1}}},
		{name: "copies with a shared volume and one each", claims: []string{"data"}, classes: []string{"wait"}, change: limits(1, 3, 9), copies: 2, limited: []Count{{What: slots, Nodes: 1}},
			refused: []Count{elsewhere, {What: "larger than the node: " + slots, Nodes: 1, TooSmall: true}}},
		{name: "copies that share a volume", claims: []string{"data"}, change: limits(1, 0, 9), copies: 4, limited: []Count{{What: "cpu", Nodes: 1}},
			refused: []Count{elsewhere, {What: "larger than the node: " + slots, Nodes: 1, TooSmall: true}}},
		{name: "a shared volume that is there already", claims: []string{"data"}, change: limits(1, 9, 9), copies: 8, limited: []Count{{What: "cpu", Nodes: 2}}, refused: []Count{elsewhere},
			running: []*corev1.Pod{using(aPod("same", "", "", "a1"), []string{"data"}, nil)}},
		{name: "a shared volume that is attached without a pod", claims: []string{"data"}, classes: []string{"wait"}, copies: 2, limited: []Count{{What: slots, Nodes: 1}}, change: func(v *Volumes) {
			limits(3, 1, 9)(v)
			v.Attachments = []*storagev1.VolumeAttachment{{Spec: storagev1.VolumeAttachmentSpec{NodeName: "a1", Attacher: driver, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}}}}
		}, refused: []Count{elsewhere, {What: "larger than the node: " + slots, Nodes: 1, TooSmall: true}}},
		{name: "a shared volume on a node that has too many", claims: []string{"data"}, change: limits(0, 0, 9), copies: 4, limited: []Count{{What: "cpu", Nodes: 1}},
			running: []*corev1.Pod{using(aPod("same", "", "", "a1"), []string{"data"}, nil)}, refused: []Count{elsewhere, {What: "larger than the node: " + slots, Nodes: 1, TooSmall: true}}},
		{name: "volumes of other pods", classes: []string{"wait"}, copies: 4, limited: []Count{{What: slots, Nodes: 2}}, refused: []Count{{What: "not enough " + slots, Nodes: 1}},
			running: []*corev1.Pod{using(aPod("x", "", "", "a1"), []string{"data"}, nil), using(aPod("y", "", "", "a1"), []string{"data"}, nil)}, change: limits(1, 2, 2)},
		{name: "volumes that are still attached", classes: []string{"wait"}, copies: 5, limited: []Count{{What: slots, Nodes: 3}}, change: func(v *Volumes) {
			limits(2, 2, 2)(v)
			v.Attachments = []*storagev1.VolumeAttachment{{Spec: storagev1.VolumeAttachmentSpec{NodeName: "b1", Attacher: driver, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}}}}
		}},
		{name: "no right to list CSINodes", classes: []string{"wait"}, copies: 12, limited: []Count{{What: "cpu", Nodes: 3}}, atMost: []string{"persistent volumes (no right to list csinodes)"}, change: func(v *Volumes) {
			v.Unread = []string{"csinodes"}
		}},
		{name: "pods with in-tree disks", classes: []string{"wait"}, copies: 6, limited: []Count{{What: slots, Nodes: 3}}, atMost: []string{"disks of in-tree drivers"}, change: limits(2, 2, 2),
			running: []*corev1.Pod{{Spec: corev1.PodSpec{NodeName: "a1", Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}}}}}}},
	}
}

// TestFitStatefulSetVolumes checks the copies of a StatefulSet: each brings new volumes, unless the
// claims of its ordinal exist.
func TestFitStatefulSetVolumes(t *testing.T) {
	pod := using(aPod("copy", "", "", "", "cpu", "1", "pods", "1"), nil, []string{"wait-a"})
	pod.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Name = "own-0-db-"
	running := []*corev1.Pod{using(aPod("db-0", "StatefulSet", "db", "a1"), []string{"own-0-db-0"}, nil)}
	v := &Volumes{Classes: []*storagev1.StorageClass{aStorageClass("wait-a", wait, "a")}, Claims: []*corev1.PersistentVolumeClaim{aClaim("own-0-db-0", "pv", ""), aClaim("own-0-db-x", "", "")}}
	names := []string{"a1", "a2", "b1"}
	f := New(threeNodes(), running).WithVolumes(v).Members(names).Fit(pod)
	equal(t, "copies", int64(8), f.Copies)
	equal(t, "at most", []string{}, f.AtMost)
	v.Claims = append(v.Claims, aClaim("own-0-db-1", "pv-1", ""))
	v.CSINodes = []*storagev1.CSINode{aCSINode("a1", 1)} // The volume of this claim may be of another driver.
	f = New(threeNodes(), running).WithVolumes(v).Members(names).Fit(pod)
	equal(t, "copies with an existing claim", int64(12), f.Copies)
	equal(t, "at most with an existing claim", []string{"existing claims of volume own-0"}, f.AtMost)
}

// TestFitVolumesOfNewNode checks that attach limits of a node that does not exist yet are named.
func TestFitVolumesOfNewNode(t *testing.T) {
	added := aNode("new", "cpu", "4", "pods", "10")
	v := &Volumes{Classes: []*storagev1.StorageClass{aStorageClass("wait", wait)}, CSINodes: []*storagev1.CSINode{aCSINode("a1", 1)}}
	f := New(append(threeNodes(), &added), nil).WithVolumes(v).Members([]string{"new"}).Fit(using(aPod("copy", "", "", "", "cpu", "1", "pods", "1"), nil, []string{"wait"}))
	equal(t, "at most", []string{"attach limits of new nodes"}, f.AtMost)
}

// TestLoseVolumes checks that lost pods are placed where their volumes are usable, within the attach
// limits.
func TestLoseVolumes(t *testing.T) {
	pod := func(name, owner, claim string) *corev1.Pod {
		return using(aPod(name, "StatefulSet", owner, "a1", "cpu", "100m", "pods", "1"), []string{claim}, nil)
	}
	running := []*corev1.Pod{
		pod("db-0", "db", "data-db-0"), pod("db-1", "db", "data-db-1"), pod("db-2", "db", "data-db-2"),
		pod("local-0", "local", "local"), using(aPod("web", "ReplicaSet", "web", "a1", "cpu", "100m", "pods", "1"), nil, []string{"wait"}),
	}
	v := &Volumes{Classes: []*storagev1.StorageClass{aStorageClass("wait", wait)}, CSINodes: []*storagev1.CSINode{aCSINode("a2", 2), aCSINode("b1", 1)}}
	for claim, zone := range map[string]string{"data-db-0": "a", "data-db-1": "a", "data-db-2": "a", "local": "elsewhere"} {
		v.Claims, v.Volumes = append(v.Claims, aClaim(claim, "pv-"+claim, "")), append(v.Volumes, aVolume("pv-"+claim, claim, zone))
	}
	loss := New(threeNodes(), running).WithVolumes(v).Lose([]string{"a1"}, nil)
	want := []WithoutPlace{{"shop", "StatefulSet/db", 1}, {"shop", "StatefulSet/local", 1}}
	equal(t, "without place", want, loss.WithoutPlace)
	equal(t, "at most", []string{}, loss.AtMost)

	_, after := New(threeNodes(), running).WithVolumes(v).Losing([]string{"a1"})
	loss, _ = after.Losing([]string{"b1"})
	equal(t, "the ephemeral volume is attached to no other node", []WithoutPlace{{"shop", "ReplicaSet/web", 1}}, loss.WithoutPlace)

	twins := []*corev1.Pod{pod("x-0", "x", "data-db-0"), pod("y-0", "y", "data-db-0")}
	oncePod(&Volumes{Claims: []*corev1.PersistentVolumeClaim{v.claim("data-db-0")}})
	loss = New(threeNodes(), twins).WithVolumes(v).Lose([]string{"a1"}, nil)
	equal(t, "only one pod uses a ReadWriteOncePod claim", 1, loss.Homeless())

	loss = New(threeNodes(), running).Lose([]string{"a1"}, nil)
	equal(t, "at most, without volumes", []string{"persistent volumes"}, loss.AtMost)
	equal(t, "without place, without volumes", []WithoutPlace{}, loss.WithoutPlace)
}

// claim returns the claim with the given name.
func (v *Volumes) claim(name string) *corev1.PersistentVolumeClaim {
	return v.Claims[slices.IndexFunc(v.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == name })]
}

// TestFitExistingEphemeralVolume checks that the claim of a pending pod's ephemeral volume counts, but
// not a claim of the same name that belongs to another object.
func TestFitExistingEphemeralVolume(t *testing.T) {
	pod := using(aPod("web", "", "", "", "cpu", "1", "pods", "1"), nil, []string{"wait"})
	pod.UID = "pod"
	claim := aClaim("web-own-0", "pv", "wait")
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web", UID: "pod", Controller: new(true)}}
	v := &Volumes{Classes: []*storagev1.StorageClass{aStorageClass("wait", wait)}, Claims: []*corev1.PersistentVolumeClaim{claim}, Volumes: []*corev1.PersistentVolume{aVolume("pv", "web-own-0", "b")}}
	fit := func() Fit { return New(threeNodes(), nil).WithVolumes(v).Members([]string{"a1", "a2", "b1"}).Fit(pod) }
	equal(t, "copies in the volume's zone", int64(4), fit().Copies)
	claim.OwnerReferences = nil
	equal(t, "refused", []Count{{What: "claim of volume own-0 belongs to another object", Nodes: 3}}, fit().Refused)
}

// TestPendingVolumes checks that pending pods are grouped by the constraints on their volumes: pods
// of a StatefulSet have claims of their own, and other pods share a claim.
func TestPendingVolumes(t *testing.T) {
	v := &Volumes{Classes: []*storagev1.StorageClass{aStorageClass("wait", wait)}, Claims: []*corev1.PersistentVolumeClaim{
		aClaim("data-db-0", "", "wait"), aClaim("data-db-1", "", "wait"), aClaim("data-db-2", "pv", "wait"), aClaim("one", "", "wait"), aClaim("two", "", "wait"),
	}, Volumes: []*corev1.PersistentVolume{aVolume("pv", "data-db-2", "a")}}
	var pending []*corev1.Pod
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		pending = append(pending, using(aPod(name, "StatefulSet", "db", ""), []string{"data-" + name}, nil))
	}
	for _, claim := range []string{"one", "two"} {
		pending = append(pending, using(aPod("web-"+claim, "ReplicaSet", "web", ""), []string{claim}, nil))
	}
	var got [][]string
	for _, g := range New(threeNodes(), pending).WithVolumes(v).Pending() {
		var names []string
		for _, p := range g.Pods {
			names = append(names, p.Name)
		}
		got = append(got, names)
	}
	equal(t, "groups", [][]string{{"db-0", "db-1"}, {"db-2"}, {"web-one"}, {"web-two"}}, got)
}
