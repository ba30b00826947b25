// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestFitSharedClaims compares pools fit with the scheduler for copies of a pod that share their
// claims: claims that are bound, missing, lost, or being deleted, claims that no driver will ever bind,
// nodes to which no more volumes can be attached, and what the pages say is not evaluated.
func TestFitSharedClaims(t *testing.T) {
	w := newStorageWorld(t, "shared",
		storageNode{"a0", "a", 2, false}, storageNode{"a1", "a", 5, true}, storageNode{"b1", "b", -1, false},
		storageNode{"x", "", 3, false}, storageNode{"b0", "b", 0, false})
	// Each node has room for two copies.
	const cpu = "2"
	for name, zone := range map[string]string{"in-a": w.zone("a"), "in-b": w.zone("b"), "one": "", "two": "", "three": "", "four": ""} {
		w.bind(t, w.claim(t, name, corev1.ReadWriteMany), zone)
	}
	never := expected{}
	everywhere := map[string]int64{"a0": 2, "b1": 2, "x": 2}
	using := func(e expected, claims ...string) func(*testing.T) (corev1.PodSpec, expected) {
		return func(*testing.T) (corev1.PodSpec, expected) { return w.pod(cpu, claims...), e }
	}
	for _, tc := range []struct {
		name  string
		setUp func(*testing.T) (corev1.PodSpec, expected)
	}{
		{"a volume of a zone, and a cordoned node", using(expected{on: map[string]int64{"a0": 2}, onEmptyNode: 2}, "in-a")},
		{"a limit of zero", using(expected{on: map[string]int64{"b1": 2}, onEmptyNode: 2}, "in-b")},
		{"a volume without a zone", using(expected{on: everywhere, onEmptyNode: 2}, "one")},
		{"volumes of two zones", using(never, "in-a", "in-b")},
		{"three volumes", using(expected{on: map[string]int64{"b1": 2, "x": 2}, onEmptyNode: 2}, "one", "two", "three")},
		{"four volumes", using(expected{on: map[string]int64{"b1": 2}, onEmptyNode: 2}, "one", "two", "three", "four")},
		{"no claim", using(never, "nowhere")},
		{"one claim of two is missing", using(never, "in-a", "nowhere")},
		{"a toleration of cordoned nodes", func(*testing.T) (corev1.PodSpec, expected) {
			spec := w.pod(cpu, "in-a")
			spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			return spec, expected{on: map[string]int64{"a0": 2, "a1": 2}, onEmptyNode: 2}
		}},
		{"a claim in two volumes of the pod", func(*testing.T) (corev1.PodSpec, expected) {
			spec := w.pod(cpu, "one", "two")
			again := *spec.Volumes[0].DeepCopy()
			again.Name = "again"
			spec.Volumes = append(spec.Volumes, again)
			return spec, expected{on: everywhere, onEmptyNode: 2}
		}},
		{"never bound", func(t *testing.T) (corev1.PodSpec, expected) {
			w.unbound(t, "immediate", w.storageClass(t, "immediate", w.driver(), storagev1.VolumeBindingImmediate))
			return w.pod(cpu, "immediate"), never
		}},
		{"no StorageClass", func(t *testing.T) (corev1.PodSpec, expected) {
			w.unbound(t, "classless", "there-is-none")
			return w.pod(cpu, "classless"), never
		}},
		{"the volume of another claim", func(t *testing.T) (corev1.PodSpec, expected) {
			w.unbound(t, "thief", "", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = w.name + "-in-a" })
			return w.pod(cpu, "thief"), never
		}},
		{"a node that does not exist is chosen", func(t *testing.T) (corev1.PodSpec, expected) {
			class := w.storageClass(t, "elsewhere", w.driver(), storagev1.VolumeBindingWaitForFirstConsumer)
			w.unbound(t, "elsewhere", class, func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{selectedNode: "nowhere"} })
			return w.pod(cpu, "elsewhere"), never
		}},
		{"allowed topologies", func(t *testing.T) (corev1.PodSpec, expected) {
			w.unbound(t, "topology", w.storageClass(t, "topology", w.driver(), storagev1.VolumeBindingWaitForFirstConsumer, "b"))
			return w.pod(cpu, "topology"), expected{on: map[string]int64{"b1": 2}, onEmptyNode: 2, mayBeAtMost: true}
		}},
		{"allowed topologies of two zones", func(t *testing.T) (corev1.PodSpec, expected) {
			w.unbound(t, "topologies", w.storageClass(t, "topologies", w.driver(), storagev1.VolumeBindingWaitForFirstConsumer, "a", "b", "c"))
			return w.pod(cpu, "topologies"), expected{on: map[string]int64{"a0": 2, "b1": 2}, anyOf: 2, onEmptyNode: 2, mayBeAtMost: true}
		}},
		{"ReadWriteOncePod", func(t *testing.T) (corev1.PodSpec, expected) {
			w.bind(t, w.claim(t, "once", corev1.ReadWriteOncePod), "")
			return w.pod(cpu, "once"), expected{on: everywhere, anyOf: 1, onEmptyNode: 1}
		}},
		{"ReadWriteOncePod in use", func(t *testing.T) (corev1.PodSpec, expected) {
			w.bind(t, w.claim(t, "taken", corev1.ReadWriteOncePod), "")
			w.hold(t, "taken")
			return w.pod(cpu, "taken"), expected{onEmptyNode: -1}
		}},
		{"deleted while it is used", func(t *testing.T) (corev1.PodSpec, expected) {
			w.bind(t, w.claim(t, "doomed", corev1.ReadWriteMany), "")
			w.hold(t, "doomed")
			w.doom(t, "doomed")
			return w.pod(cpu, "doomed"), never
		}},
		{"its volume is lost", func(t *testing.T) (corev1.PodSpec, expected) {
			w.lost(t, "lost")
			return w.pod(cpu, "lost"), never
		}},
		{"a label of a zone on the volume", func(t *testing.T) (corev1.PodSpec, expected) {
			c := w.claim(t, "labelled", corev1.ReadWriteMany)
			w.volume(t, c, "")
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-labelled"}}
			cluster.Change(t, pv, func() { pv.Labels = map[string]string{corev1.LabelTopologyZone: w.zone("a") + "__" + w.zone("c")} })
			w.bind(t, c, "")
			// A node without labels of zones takes the volume.
			return w.pod(cpu, "labelled"), expected{on: map[string]int64{"a0": 2, "x": 2}, onEmptyNode: 2}
		}},
		{"a volume that is still attached", func(t *testing.T) (corev1.PodSpec, expected) {
			w.bind(t, w.claim(t, "stray", corev1.ReadWriteMany), "")
			w.attach(t, "stray", "x", "one", "two", "three")
			return w.pod(cpu, "one", "two", "three"), expected{on: map[string]int64{"b1": 2}, onEmptyNode: -1}
		}},
		{"its own volume is still attached", func(t *testing.T) (corev1.PodSpec, expected) {
			// The scheduler counts it twice.
			w.attach(t, "one", "x", "one", "two", "three")
			return w.pod(cpu, "one", "two", "three"), expected{on: map[string]int64{"b1": 2}, onEmptyNode: -1}
		}},
		{"a driver that is missing on nodes", func(t *testing.T) (corev1.PodSpec, expected) {
			driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "must." + w.driver()}, Spec: storagev1.CSIDriverSpec{
				AttachRequired: new(false), PreventPodSchedulingIfMissing: new(true),
			}}
			cluster.Apply(t, driver)
			n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-a0"}}
			cluster.Change(t, n, func() {
				n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: driver.Name, NodeID: n.Name})
			})
			w.unbound(t, "must", w.storageClass(t, "must", driver.Name, storagev1.VolumeBindingWaitForFirstConsumer))
			return w.pod(cpu, "must"), expected{on: map[string]int64{"a0": 2}, onEmptyNode: 2, mayBeAtMost: true}
		}},
		{"an ephemeral volume of a driver", func(*testing.T) (corev1.PodSpec, expected) {
			spec := w.pod(cpu)
			spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: w.driver()}}}}
			return spec, expected{on: map[string]int64{"a0": 2, "b0": 2, "b1": 2, "x": 2}, onEmptyNode: 2}
		}},
		{"storage capacity is not evaluated", func(t *testing.T) (corev1.PodSpec, expected) {
			driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "full." + w.driver()}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false), StorageCapacity: new(true)}}
			cluster.Apply(t, driver)
			w.unbound(t, "full", w.storageClass(t, "full", driver.Name, storagev1.VolumeBindingWaitForFirstConsumer))
			return w.pod(cpu, "full"), expected{atMost: true}
		}},
		{"in-tree drivers are not evaluated", func(*testing.T) (corev1.PodSpec, expected) {
			spec := w.pod(cpu)
			spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2026-01.com.example:disk"}}}}
			return spec, expected{on: map[string]int64{"a0": 1, "b0": 1, "b1": 1, "x": 1}, atMost: true}
		}},
		{"a volume of an in-tree driver", func(t *testing.T) (corev1.PodSpec, expected) {
			w.inTree(t, "in-tree")
			return w.pod(cpu, "in-tree"), expected{on: map[string]int64{"a0": 2, "b0": 2, "b1": 2, "x": 2}, atMost: true}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec, e := tc.setUp(t)
			w.assertAgree(t, spec, e)
		})
	}
}

// hold starts a pod that uses a claim, takes no room, and is not counted among the copies.
func (w *storageWorld) hold(t *testing.T, claim string) {
	t.Helper()
	spec := w.pod("0", claim)
	spec.NodeName = w.name + "-b1"
	cluster.Apply(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "holder", Namespace: w.name}, Spec: spec})
}

// doom deletes a claim that is used, and waits until it is being deleted.
func (w *storageWorld) doom(t *testing.T, name string) {
	t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}}
	cluster.Delete(t, c)
	cluster.Refresh(t, c)
	if c.DeletionTimestamp == nil {
		t.Fatalf("%s is not being deleted", name)
	}
}

// lost creates a claim whose volume has been deleted.
func (w *storageWorld) lost(t *testing.T, name string) {
	t.Helper()
	c := w.claim(t, name, corev1.ReadWriteMany)
	w.bind(t, c, "")
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: c.Spec.VolumeName}}
	cluster.Delete(t, pv)
	framework.Eventually(t, "the volume is gone and the claim is lost", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err == nil {
			cluster.Change(t, pv, func() { pv.Finalizers = nil })
		}
		cluster.Refresh(t, c)
		if c.Status.Phase != corev1.ClaimLost {
			return fmt.Errorf("it is %s", c.Status.Phase)
		}
		return nil
	})
}

// attach creates the VolumeAttachment of a claim's volume to a node, and waits until the scheduler
// finds that the given claims cannot be attached there in addition.
func (w *storageWorld) attach(t *testing.T, claim, node string, claims ...string) {
	t.Helper()
	cluster.Apply(t, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + claim}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: w.driver(), NodeName: w.name + "-" + node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(w.name + "-" + claim)},
	}})
	spec := w.pod("100m", claims...)
	spec.NodeSelector[corev1.LabelHostname] = w.name + "-" + node
	framework.Eventually(t, "the scheduler knows what is attached", func() error {
		w.create(t, spec, 1)
		defer w.removeCopies(t)
		return w.settled(t, func(s tally) error {
			if s.placed > 0 {
				return fmt.Errorf("it places a pod on %v", s.on)
			}
			return nil
		})
	})
}

// inTree creates a claim that is bound to a volume of an in-tree driver.
func (w *storageWorld) inTree(t *testing.T, name string) {
	t.Helper()
	c := w.claim(t, name, corev1.ReadWriteMany)
	pv := w.volumeFor(c)
	pv.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}
	createVolume(t, pv)
	w.bind(t, c, "")
}
