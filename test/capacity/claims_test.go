// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// storageWorld is a world whose nodes have 4 CPUs, and differ in their zone and in the number of
// volumes that can be attached to them.
type storageWorld struct {
	*volumeWorld
	made int // number of StatefulSets created so far
}

// storageNode describes a node of a storageWorld. An empty zone means that the node has no label of a
// zone. A negative limit means that the node has no CSINode.
type storageNode struct {
	name, zone string
	limit      int32
	cordoned   bool
}

// newStorageWorld creates a world with the given nodes. The scheduler has seen all of their CSINodes:
// it finds that more volumes than the last node's limit cannot be attached to this node.
func newStorageWorld(t *testing.T, name string, nodes ...storageNode) *storageWorld {
	t.Helper()
	w := &storageWorld{volumeWorld: &volumeWorld{newWorld(t, name, rand.New(rand.NewPCG(1, 1)))}}
	// Nothing attaches the volumes.
	cluster.Apply(t, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: w.driver()}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}})
	for _, node := range nodes {
		n := framework.Node(w.name + "-" + node.name)
		n.Labels = map[string]string{worldLabel: name, corev1.LabelHostname: n.Name}
		if node.zone != "" {
			n.Labels[corev1.LabelTopologyZone] = w.zone(node.zone)
		}
		n.Spec.Unschedulable = node.cordoned
		n.Status.Allocatable = list("cpu", "4", "memory", "4Gi", "pods", "20")
		if node.limit >= 0 {
			cluster.Apply(t, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: w.driver(), NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &node.limit},
			}}}})
		}
		w.addNode(t, n)
	}
	w.awaitNodes(t)
	last := nodes[len(nodes)-1]
	var claims []string
	for i := range last.limit + 1 {
		claims = append(claims, fmt.Sprint("too-many-", i))
		w.bind(t, w.claim(t, claims[i], corev1.ReadWriteMany), "")
	}
	spec := w.pod("100m", claims...)
	spec.NodeSelector[corev1.LabelHostname] = w.name + "-" + last.name
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // The node may be cordoned.
	framework.Eventually(t, "the scheduler knows the attach limits", func() error {
		w.create(t, spec, 1)
		defer w.removeCopies(t)
		return w.settled(t, func(s tally) error {
			if s.placed > 0 || !strings.Contains(s.why, "max volume count") {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
	})
	return w
}

// zone returns the full name of a zone of the world.
func (w *storageWorld) zone(short string) string { return w.name + "-" + short }

// pod returns the spec of a pod that tolerates no taint and uses the claims.
func (w *storageWorld) pod(cpu string, claims ...string) corev1.PodSpec {
	s := w.using(claims...)
	s.Tolerations = nil
	s.Containers[0].Resources.Requests = list("cpu", cpu)
	return s
}

// storageClass creates a StorageClass for the world's driver. If zones are given, its volumes can only
// be in these.
func (w *storageWorld) storageClass(t *testing.T, name, driver string, mode storagev1.VolumeBindingMode, zones ...string) string {
	t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + name}, Provisioner: driver, VolumeBindingMode: &mode}
	if len(zones) > 0 {
		for i := range zones {
			zones[i] = w.zone(zones[i])
		}
		class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}}}}
	}
	cluster.Apply(t, class)
	return class.Name
}

// unbound creates a claim with a StorageClass, after a change by the given functions.
func (w *storageWorld) unbound(t *testing.T, name, class string, changes ...func(*corev1.PersistentVolumeClaim)) {
	t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}, Spec: claimSpec(class)}
	for _, change := range changes {
		change(c)
	}
	if err := cluster.Create(t.Context(), c); err != nil { // It is deleted with its namespace.
		t.Fatal(err)
	}
}

func claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "1Gi")},
	}
}

// createVolume creates a volume, and deletes it when the test ends without waiting: it may be in use.
func createVolume(t *testing.T, pv *corev1.PersistentVolume) {
	t.Helper()
	if err := cluster.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Client.Delete(context.WithoutCancel(t.Context()), pv); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// volumeFor returns a volume for a claim, with a source yet to be set.
func (w *storageWorld) volumeFor(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + c.Name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: list("storage", "1Gi"), AccessModes: c.Spec.AccessModes,
		ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
	}}
}

// onNodes restricts a volume to nodes, by their short names.
func (w *storageWorld) onNodes(names ...string) *corev1.VolumeNodeAffinity {
	requirement := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn}
	for _, name := range names {
		requirement.Values = append(requirement.Values, w.name+"-"+name)
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}}}}}
}

// create creates copies of a pod.
func (w *storageWorld) create(t *testing.T, spec corev1.PodSpec, count int64) {
	t.Helper()
	for range count {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("copy-", w.pods), Namespace: w.name, Labels: map[string]string{"app": "copy"}}, Spec: *spec.DeepCopy()}
		if err := cluster.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		w.pods++
	}
}

// tally counts the scheduler's decisions about the pods of a world.
type tally struct {
	placed, refused int64
	on              map[string]int64 // number of pods on each node, by its short name
	why             string           // why one of the refused pods has no node
}

// settled waits until the scheduler has tried each of the world's pods, and the result is as
// described. It creates the volumes that the scheduler asks for, as a driver does, in the zone of the
// chosen node.
func (w *storageWorld) settled(t *testing.T, is func(tally) error) (err error) {
	t.Helper()
	framework.Eventually(t, "the scheduler has tried each pod", func() error {
		w.provision(t)
		s := tally{on: map[string]int64{}}
		for _, p := range w.podsOf(t) {
			switch why := unschedulable(&p); {
			case p.Labels["app"] == "": // It is not a copy, but holds something that copies need.
			case p.Spec.NodeName != "":
				s.placed++
				s.on[strings.TrimPrefix(p.Spec.NodeName, w.name+"-")]++
			case why != "":
				s.refused++
				s.why = why
			default:
				return fmt.Errorf("%s has not been tried", p.Name)
			}
		}
		err = is(s)
		return nil
	})
	return err
}

// provision creates a volume for each claim for which the scheduler has chosen a node.
func (w *storageWorld) provision(t *testing.T) {
	t.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	if err := cluster.List(t.Context(), claims, client.InNamespace(w.name)); err != nil {
		t.Fatal(err)
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if node := c.Annotations[selectedNode]; c.Spec.VolumeName == "" && slices.ContainsFunc(w.nodes, func(n corev1.Node) bool { return n.Name == node }) {
			w.volume(t, c, w.zoneOf(node))
		}
	}
}

// synced waits until the API server's watch cache, which the plugin reads, has the latest version of
// all objects that are about volumes, and of all pods.
func synced(t *testing.T) {
	t.Helper()
	versions := func(l client.ObjectList, options ...client.ListOption) (map[string]string, error) {
		found := map[string]string{}
		err := cluster.List(t.Context(), l, options...)
		return found, errors.Join(err, meta.EachListItem(l, func(o runtime.Object) error {
			found[o.(client.Object).GetNamespace()+"/"+o.(client.Object).GetName()] = o.(client.Object).GetResourceVersion()
			return nil
		}))
	}
	framework.Eventually(t, "the watch cache has all objects", func() error {
		for _, l := range []client.ObjectList{
			&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &storagev1.StorageClassList{}, &storagev1.CSIDriverList{},
			&storagev1.CSINodeList{}, &storagev1.VolumeAttachmentList{}, &corev1.PodList{},
		} {
			stored, err := versions(l.DeepCopyObject().(client.ObjectList))
			seen, cacheErr := versions(l.DeepCopyObject().(client.ObjectList), cached())
			if err := errors.Join(err, cacheErr); err != nil {
				return err
			}
			if !maps.Equal(stored, seen) {
				return fmt.Errorf("it has another %T", l)
			}
		}
		return nil
	})
}

// answered is the output of pools fit, with the number of nodes that take copies.
type answered struct {
	fit
	Nodes int
}

// ask runs pools fit for the world's pool, about the given manifest unless it is empty.
func (w *storageWorld) ask(t *testing.T, stdin string, args ...string) answered {
	t.Helper()
	synced(t)
	var all []answered
	if stdin != "" {
		args = append(args, "-f", "-")
	}
	answer(t, &all, stdin, append([]string{"pools", "fit", w.name, "-n", w.name}, args...))
	if len(all) != 1 || all[0].Pool != w.name || all[0].Members != len(w.nodes) {
		t.Fatalf("pools fit prints %+v, want one pool with %d nodes", all, len(w.nodes))
	}
	return all[0]
}

func podOf(spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "copy", Labels: map[string]string{"app": "copy"}}, Spec: spec}
}

// expected describes the scheduler's decisions about copies of a pod.
type expected struct {
	on map[string]int64 // number of copies that a node takes, by its short name
	// anyOf is the number of copies that are placed on any of the nodes in `on`, if it is not the sum.
	anyOf int64
	// atMost is true if the answer must not be exact: the page says that something is not evaluated.
	atMost bool
	// mayBeAtMost is true if the number depends on the choices of the scheduler or of a driver.
	mayBeAtMost bool
	// onEmptyNode is the number of copies that an empty node takes. It is not compared if it is negative.
	onEmptyNode int64
}

func (e expected) copies() (sum int64) {
	for _, n := range e.on {
		sum += n
	}
	if e.anyOf > 0 {
		return e.anyOf
	}
	return sum
}

// judge compares an answer of pools fit with the scheduler's decisions.
func (e expected) judge(t *testing.T, says answered) {
	t.Helper()
	uncertain := len(says.AtMost) > 0
	switch {
	case e.atMost && (!uncertain || says.Copies < e.copies()):
		t.Errorf("pools fit says %+v, want at most %d or more", says, e.copies())
	case e.atMost:
	case e.mayBeAtMost && uncertain && says.Copies >= e.copies():
	case uncertain || says.Copies != e.copies():
		t.Errorf("pools fit says %+v, want exactly %d", says, e.copies())
	case e.onEmptyNode >= 0 && says.OnEmptyNode != e.onEmptyNode:
		t.Errorf("pools fit says %d on an empty node, want %d: %+v", says.OnEmptyNode, e.onEmptyNode, says)
	}
	others := 0
	for _, r := range says.Refused {
		others += r.Nodes
	}
	if says.Nodes+others != says.Members {
		t.Errorf("pools fit says that %d of %d nodes take copies, and why %d others do not: %+v", says.Nodes, says.Members, others, says)
	}
	if says.Preemption != nil {
		t.Errorf("pools fit names a preemption although all priorities are equal: %+v", says.Preemption)
	}
}

// places waits until the scheduler has placed copies as expected, and found no node for `refused` more.
func (e expected) places(t *testing.T, w *storageWorld, refused int64) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("the scheduler places %d pods", e.copies()), func() error {
		return w.settled(t, func(s tally) error {
			if s.placed != e.copies() || s.refused != refused {
				return fmt.Errorf("it places %d on %v, and refuses %d: %s", s.placed, s.on, s.refused, s.why)
			}
			for node, n := range s.on {
				if n > e.on[node] {
					return fmt.Errorf("it places %d pods on %s, want %d", n, node, e.on[node])
				}
			}
			return nil
		})
	})
}

// assertAgree compares pools fit with the scheduler, which places as many copies as expected and no
// more. It then asks pools pending about the copy that is left.
func (w *storageWorld) assertAgree(t *testing.T, spec corev1.PodSpec, e expected) {
	t.Helper()
	e.judge(t, w.ask(t, manifest(t, podOf(spec))))
	w.create(t, spec, e.copies())
	e.places(t, w, 0)
	w.create(t, spec, 1)
	e.places(t, w, 1)
	w.assertPending(t, 1, e)
	w.removeCopies(t)
}
