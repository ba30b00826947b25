// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// selectedNode is the annotation by which the scheduler asks for a volume on a node.
const selectedNode = "volume.kubernetes.io/selected-node"

// TestFitVolumes checks that the scheduler places as many copies of pods with volumes as pools fit
// reports, and where: in the zone of a bound volume, in the zones of a StorageClass, and within the
// attach limits of nodes. After the loss of a node, it finds no node for as many pods as pools loss
// reports.
func TestFitVolumes(t *testing.T) {
	w := newVolumeWorld(t, "volumes")
	w.bind(t, w.claim(t, "data", corev1.ReadWriteMany), "volumes-a")
	w.bind(t, w.claim(t, "once", corev1.ReadWriteOncePod), "")

	w.assertPlaced(t, w.using("data"), 8, "volumes-a")
	w.removeCopies(t)
	w.assertPlaced(t, w.using("once"), 1, "")
	w.removeCopies(t)
	w.assertPlaced(t, w.using("none"), 0, "")
	w.removeCopies(t)

	w.class(t, "volumes-a")
	w.awaitLimits(t)
	w.statefulSet(t)
	var says fit
	framework.Eventually(t, "pools fit counts attachable volumes", func() error {
		if says = w.fit(t, "", "--like", "sts/db"); says.Copies != 3 || len(says.AtMost) > 0 {
			return fmt.Errorf("%+v", says)
		}
		return nil
	})
	db := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: w.name}}
	cluster.Change(t, db, func() { db.Spec.Replicas = new(int32(4)) })
	on := w.awaitDatabase(t, 3)
	if on["volumes-0"] != 1 || on["volumes-1"] != 2 {
		t.Errorf("the scheduler places pods on %v, want 1 on volumes-0 and 2 on volumes-1", on)
	}
	w.pods = 4
	w.awaitPods(t)
	w.assertLoss(t)
}

// volumeWorld is a world with volumes: two nodes of a zone to which 1 and 2 volumes can be attached,
// and a node of another zone to which 2 volumes can be attached.
type volumeWorld struct{ *world }

func newVolumeWorld(t *testing.T, name string) *volumeWorld {
	t.Helper()
	w := &volumeWorld{newWorld(t, name, rand.New(rand.NewPCG(1, 1)))}
	// Nothing attaches the volumes.
	cluster.Apply(t, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: w.driver()}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}})
	for i, zone := range []string{"-a", "-a", "-b"} {
		n := framework.Node(fmt.Sprint(name, "-", i))
		n.Labels = map[string]string{worldLabel: name, corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: name + zone}
		n.Status.Allocatable = list("cpu", "4", "memory", "4Gi", "pods", "10")
		cluster.Apply(t, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: w.driver(), NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: new([]int32{1, 2, 2}[i])},
		}}}})
		w.addNode(t, n)
	}
	w.awaitNodes(t)
	return w
}

// driver is the name of the world's CSI driver.
func (w *volumeWorld) driver() string { return w.name + ".example.com" }

// class creates a StorageClass whose volumes are created in a zone, where the first pod is placed.
func (w *volumeWorld) class(t *testing.T, zone string) {
	t.Helper()
	cluster.Apply(t, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.name}, Provisioner: w.driver(), VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{zone}}}}},
	})
}

// claim creates a claim without a StorageClass.
func (w *volumeWorld) claim(t *testing.T, name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{mode}, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "1Gi")},
	}}
	if err := cluster.Create(t.Context(), c); err != nil { // It is deleted with its namespace.
		t.Fatal(err)
	}
	return c
}

// volume creates a volume for a claim unless it exists. Only nodes of the zone can use it, unless
// zone is empty.
func (w *volumeWorld) volume(t *testing.T, claim *corev1.PersistentVolumeClaim, zone string) {
	t.Helper()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + claim.Name}}
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity: list("storage", "1Gi"), AccessModes: claim.Spec.AccessModes, StorageClassName: *claim.Spec.StorageClassName,
		ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: w.driver(), VolumeHandle: claim.Name}},
	}
	if zone != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	if err := cluster.Create(t.Context(), pv); apierrors.IsAlreadyExists(err) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Nothing waits for the end of the volume, which may be in use until then.
		if err := cluster.Client.Delete(context.WithoutCancel(t.Context()), pv); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// bind creates a volume for a claim, and waits until it is bound.
func (w *volumeWorld) bind(t *testing.T, claim *corev1.PersistentVolumeClaim, zone string) {
	t.Helper()
	w.volume(t, claim, zone)
	framework.Eventually(t, claim.Name+" is bound", func() error {
		cluster.Refresh(t, claim)
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("it is %s", claim.Status.Phase)
		}
		return nil
	})
}

// volumeOf returns the volume of a pod that uses a claim.
func volumeOf(claim string) corev1.Volume {
	return corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

// using returns the spec of a pod that uses the claims.
func (w *volumeWorld) using(claims ...string) corev1.PodSpec {
	s := corev1.PodSpec{
		NodeSelector: map[string]string{worldLabel: w.name}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{container("app", list("cpu", "1"))}, TerminationGracePeriodSeconds: new(int64(0)),
	}
	for _, name := range claims {
		s.Volumes = append(s.Volumes, volumeOf(name))
	}
	return s
}

// assertPlaced fails the test unless pools fit reports `want` copies, and the scheduler places as
// many and no more, all of them in the zone unless it is empty.
func (w *world) assertPlaced(t *testing.T, spec corev1.PodSpec, want int64, zone string) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("pools fit has room for %d copies", want), func() error {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "copy"}, Spec: spec}
		if says := w.fit(t, manifest(t, pod), "-f", "-"); says.Copies != want || len(says.AtMost) > 0 {
			return fmt.Errorf("%+v", says)
		}
		return nil
	})
	w.copies(t, spec, want)
	framework.Eventually(t, "the scheduler places the copies", func() error {
		// It may have tried a copy before it knew of a claim.
		if got, why := w.copies(t, spec, 0); got != want {
			return fmt.Errorf("%d of %d: %s", got, want, why)
		}
		return nil
	})
	if got, _ := w.copies(t, spec, 1); got != want {
		t.Errorf("the scheduler places more than %d copies\n%s", want, w.describe(spec))
	}
	for _, p := range w.podsOf(t, client.MatchingLabels{"app": "copy"}) {
		if p.Spec.NodeName != "" && zone != "" && w.zoneOf(p.Spec.NodeName) != zone {
			t.Errorf("%s is on %s, want in zone %s", p.Name, p.Spec.NodeName, zone)
		}
	}
}

func (w *world) zoneOf(node string) string {
	i := slices.IndexFunc(w.nodes, func(n corev1.Node) bool { return n.Name == node })
	if i < 0 {
		return ""
	}
	return w.nodes[i].Labels[corev1.LabelTopologyZone]
}

// removeCopies deletes all pods of the world.
func (w *world) removeCopies(t *testing.T) {
	t.Helper()
	if err := cluster.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.name), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.pods = 0
	w.awaitPods(t)
}

// awaitLimits waits until the scheduler knows the attach limits: a pod with three volumes is not
// placed on the last node.
func (w *volumeWorld) awaitLimits(t *testing.T) {
	t.Helper()
	names := []string{"one", "two", "three"}
	for _, name := range names {
		w.bind(t, w.claim(t, name, corev1.ReadWriteMany), "")
	}
	spec := w.using(names...)
	spec.NodeSelector[corev1.LabelHostname] = w.name + "-2"
	framework.Eventually(t, "the scheduler knows the attach limits", func() error {
		placed, why := w.copies(t, spec, 1)
		w.removeCopies(t)
		if placed > 0 || !strings.Contains(why, "max volume count") {
			return fmt.Errorf("%d placed: %s", placed, why)
		}
		return nil
	})
}

// statefulSet creates the StatefulSet db without pods, each of whose pods would have a volume.
func (w *volumeWorld) statefulSet(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "db"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: w.using()}
	template.Spec.Containers[0].Resources.Requests = list("cpu", "100m")
	cluster.Apply(t, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: w.name}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template, ServiceName: "db", PodManagementPolicy: appsv1.ParallelPodManagement,
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(w.name), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "1Gi")},
		}}},
	}})
}

// awaitDatabase waits until `want` of the 4 pods of the StatefulSet are on nodes, and the scheduler
// finds none for the others. It creates the volumes that the scheduler asks for. It returns the
// number of pods on each node.
func (w *volumeWorld) awaitDatabase(t *testing.T, want int) (on map[string]int) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("%d pods of the StatefulSet are on nodes", want), func() error {
		claims := &corev1.PersistentVolumeClaimList{}
		if err := cluster.List(t.Context(), claims, client.InNamespace(w.name)); err != nil {
			return err
		}
		for i := range claims.Items {
			if c := &claims.Items[i]; c.Spec.VolumeName == "" && c.Annotations[selectedNode] != "" {
				w.volume(t, c, w.zoneOf(c.Annotations[selectedNode]))
			}
		}
		pods := w.podsOf(t)
		placed, refused := 0, 0
		on = map[string]int{}
		for i := range pods {
			switch p := &pods[i]; {
			case p.Spec.NodeName != "":
				on[p.Spec.NodeName]++
				placed++
			case strings.Contains(unschedulable(p), "max volume count"):
				refused++
			}
		}
		if placed != want || refused != 4-want || len(pods) != 4 {
			return fmt.Errorf("%d pods, of which %d are refused; on nodes: %v", len(pods), refused, on)
		}
		return nil
	})
	return on
}

// assertLoss loses the node with two pods of the StatefulSet, for which there is no room in their
// zone, and fails the test unless pools loss and the scheduler find no place for them.
func (w *volumeWorld) assertLoss(t *testing.T) {
	t.Helper()
	var losses []loss
	gone := w.name + "-1"
	framework.Eventually(t, "pools loss finds no place for two pods", func() error {
		losses = nil
		answer(t, &losses, "", []string{"pools", "loss", "--node", gone}, 2)
		if len(losses) != 1 || losses[0].Pods != 2 || losses[0].homeless() != 2 || len(losses[0].AtMost) > 0 {
			return fmt.Errorf("%+v", losses)
		}
		return nil
	})
	w.lose(t, []string{gone})
	if pending := w.settle(t, []string{gone}, 4); len(pending) != 3 {
		t.Errorf("the scheduler finds no node for %d pods, want the 2 that were lost and the one before", len(pending))
	}
	framework.Eventually(t, "pools pending knows that they fit nowhere now", func() error {
		groups := w.pending(t)
		pods := 0
		for _, g := range groups {
			if len(g.Pools) == 1 && g.Pools[0].Answer == "FitsAnEmptyNode" && len(g.Pools[0].AtMost) == 0 && strings.HasPrefix(g.Pods[0], "db-") {
				pods += len(g.Pods)
			}
		}
		if pods != 3 {
			return fmt.Errorf("%+v", groups)
		}
		return nil
	})
}
