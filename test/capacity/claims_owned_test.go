// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestFitOwnClaims compares pools fit with the scheduler for copies that bring volumes of their own:
// those of a StatefulSet, with one or two claim templates, and those of a pod with ephemeral volumes.
func TestFitOwnClaims(t *testing.T) {
	w := newStorageWorld(t, "owned",
		storageNode{"a0", "a", 2, false}, storageNode{"a1", "a", 5, true}, storageNode{"b1", "b", -1, false},
		storageNode{"x", "", 3, false}, storageNode{"b0", "b", 0, false})
	w.bind(t, w.claim(t, "in-a", corev1.ReadWriteMany), w.zone("a"))
	anywhere := w.storageClass(t, "anywhere", w.driver(), storagev1.VolumeBindingWaitForFirstConsumer)
	inB := w.storageClass(t, "in-b", w.driver(), storagev1.VolumeBindingWaitForFirstConsumer, "b")
	immediate := w.storageClass(t, "immediate", w.driver(), storagev1.VolumeBindingImmediate)
	disks := w.disks(t)
	for _, tc := range []struct {
		name      string
		shared    []string // claims that all copies share
		templates []corev1.PersistentVolumeClaimSpec
		expected
	}{
		{"one template", nil, []corev1.PersistentVolumeClaimSpec{claimSpec(anywhere)}, expected{on: map[string]int64{"a0": 2, "b1": 2, "x": 2}}},
		{"two templates", nil, []corev1.PersistentVolumeClaimSpec{claimSpec(anywhere), claimSpec(anywhere)}, expected{on: map[string]int64{"a0": 1, "b1": 2, "x": 1}}},
		{"allowed topologies", nil, []corev1.PersistentVolumeClaimSpec{claimSpec(inB)}, expected{on: map[string]int64{"b1": 2}}},
		{"two classes", nil, []corev1.PersistentVolumeClaimSpec{claimSpec(inB), claimSpec(anywhere)}, expected{on: map[string]int64{"b1": 2}}},
		{"a shared claim too", []string{"in-a"}, []corev1.PersistentVolumeClaimSpec{claimSpec(anywhere)}, expected{on: map[string]int64{"a0": 1}}},
		{"a shared claim that is missing", []string{"nowhere"}, []corev1.PersistentVolumeClaimSpec{claimSpec(anywhere)}, expected{}},
		{"no StorageClass", nil, []corev1.PersistentVolumeClaimSpec{claimSpec("there-is-none")}, expected{}},
		{"each may be used by one pod", nil, []corev1.PersistentVolumeClaimSpec{once(claimSpec(anywhere))}, expected{on: map[string]int64{"a0": 2, "b1": 2, "x": 2}}},
		// A driver may never bind the claims, as here.
		{"bound before they are used", nil, []corev1.PersistentVolumeClaimSpec{claimSpec(immediate)}, expected{mayBeAtMost: true}},
		// Two disks of a0 are left for one more, and those of other nodes are too small, of another mode, or out of reach.
		{"disks of nodes", nil, []corev1.PersistentVolumeClaimSpec{claimSpec(disks)}, expected{on: map[string]int64{"a0": 2, "x": 1}, mayBeAtMost: true}},
	} {
		t.Run(tc.name, func(t *testing.T) { w.assertStatefulSet(t, tc.shared, tc.templates, tc.expected) })
	}
	t.Run("ephemeral volumes", func(t *testing.T) {
		// The limit of a0 and of x is below the number for which they have CPU.
		w.assertAgree(t, ephemeral("own", w.pod("1"), claimSpec(anywhere)), expected{on: map[string]int64{"a0": 2, "b1": 4, "x": 3}, onEmptyNode: 4})
	})
	t.Run("ephemeral volumes of a zone", func(t *testing.T) {
		w.assertAgree(t, ephemeral("in-b", w.pod("2"), claimSpec(inB)), expected{on: map[string]int64{"b1": 2}, onEmptyNode: 2})
	})
	t.Run("the claim of another pod's ephemeral volume", func(t *testing.T) {
		// A tenant has created the claim of the pod's ephemeral volume before.
		w.unbound(t, "copy-0-mine", anywhere)
		spec := ephemeral("mine", w.pod("2"), claimSpec(anywhere))
		w.create(t, spec, 1)
		expected{}.places(t, w, 1)
		w.assertPending(t, 1, expected{})
		w.removeCopies(t)
	})
}

func once(spec corev1.PersistentVolumeClaimSpec) corev1.PersistentVolumeClaimSpec {
	spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	return spec
}

// ephemeral gives each copy of a pod a volume of its own.
func ephemeral(name string, spec corev1.PodSpec, claim corev1.PersistentVolumeClaimSpec) corev1.PodSpec {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim}},
	}})
	return spec
}

// disks creates a StorageClass without a driver, and volumes of it on the nodes.
func (w *storageWorld) disks(t *testing.T) string {
	t.Helper()
	class := w.storageClass(t, "disks", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer)
	for i, disk := range []struct {
		node, size string
		mode       corev1.PersistentVolumeAccessMode
	}{
		{"a0", "1Gi", corev1.ReadWriteOnce}, {"a0", "2Gi", corev1.ReadWriteOnce}, {"a1", "1Gi", corev1.ReadWriteOnce},
		{"b1", "1023Mi", corev1.ReadWriteOnce}, {"x", "1Gi", corev1.ReadWriteOnce}, {"x", "1Gi", corev1.ReadOnlyMany},
	} {
		createVolume(t, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(w.name, "-disk-", i)}, Spec: corev1.PersistentVolumeSpec{
			Capacity: list("storage", disk.size), AccessModes: []corev1.PersistentVolumeAccessMode{disk.mode}, StorageClassName: class,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}}, NodeAffinity: w.onNodes(disk.node),
		}})
	}
	return class
}

// assertStatefulSet compares pools fit with the scheduler for a StatefulSet without pods, which then
// gets one pod more than fit.
func (w *storageWorld) assertStatefulSet(t *testing.T, shared []string, templates []corev1.PersistentVolumeClaimSpec, e expected) {
	t.Helper()
	e.onEmptyNode = -1
	labels := map[string]string{"app": "own"}
	// The StatefulSet's name is part of the names of its claims, which stay when it is deleted.
	w.made++
	sts := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("own-", w.made), Namespace: w.name}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "own", PodManagementPolicy: appsv1.ParallelPodManagement,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: w.pod("2", shared...)},
	}}
	for i, spec := range templates {
		sts.Spec.VolumeClaimTemplates = append(sts.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("data-", i)}, Spec: spec})
	}
	cluster.Apply(t, sts)
	e.judge(t, w.ask(t, "", "--like", "sts/"+sts.Name))
	cluster.Change(t, sts, func() { sts.Spec.Replicas = new(int32(e.copies() + 1)) })
	e.places(t, w, 1)
	w.assertPending(t, 1, e)
	cluster.Change(t, sts, func() { sts.Spec.Replicas = new(int32(0)) })
	framework.Eventually(t, "the StatefulSet has no pods", func() error {
		if pods := w.podsOf(t); len(pods) > 0 {
			return fmt.Errorf("%d", len(pods))
		}
		return nil
	})
	w.removeCopies(t)
}
