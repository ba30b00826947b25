// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestLossOfPodsWithClaims compares pools loss with the scheduler in a pool of two zones. The lost node
// has all pods: two of a StatefulSet and one with a ReadWriteOncePod claim, whose volumes are in its
// zone, where two volumes can be attached to the other node; two whose volumes can also be used on the
// node of the other zone, to which one volume can be attached; one whose claim a tenant has deleted; and
// one without a claim.
func TestLossOfPodsWithClaims(t *testing.T) {
	w := newStorageWorld(t, "bereft", storageNode{"a0", "a", 6, false}, storageNode{"a1", "a", 2, true}, storageNode{"b0", "b", 1, true})
	w.class(t, w.zone("a"))
	w.statefulSet(t)
	w.bind(t, w.claim(t, "held", corev1.ReadWriteOncePod), w.zone("a"))
	w.bind(t, w.claim(t, "doomed", corev1.ReadWriteOnce), "")
	for _, name := range []string{"roams-1", "roams-2"} {
		w.bindToNodes(t, name, "a0", "b0")
	}
	for _, name := range []string{"held", "doomed", "roams-1", "roams-2", "free"} {
		spec := w.pod("100m", name)
		if name == "free" {
			spec.Volumes = nil
		}
		d := framework.Deployment(name, 1, spec)
		d.Namespace = w.name
		cluster.Apply(t, d)
	}
	db := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: w.name}}
	cluster.Change(t, db, func() { db.Spec.Replicas, db.Spec.Template.Spec.Tolerations = new(int32(2)), nil })
	w.pods = 7
	expected{on: map[string]int64{"a0": 7}}.places(t, w, 0)
	for _, name := range []string{"a1", "b0"} {
		n := framework.Node(w.name + "-" + name)
		cluster.Change(t, n, func() { n.Spec.Unschedulable = false })
	}
	w.awaitNodes(t)
	w.awaitPods(t)
	w.doom(t, "doomed")
	synced(t)

	// Of three pods that need the zone, two have a place. Of two that roam, one has.
	for args, want := range map[string][]int{
		"--node a0": {3}, "--node a0 --cordon b0": {4}, "--node a0 --cordon a1,b0": {7}, "--zone a": {5}, "--node a0 --then a1": {3, 2},
	} {
		var losses []loss
		answer(t, &losses, "", w.lossArgs(args), 2)
		var homeless []int
		for _, l := range losses {
			homeless = append(homeless, l.homeless())
			if len(l.AtMost) > 0 {
				t.Errorf("pools loss %s is not certain, because of %s", args, l.AtMost)
			}
		}
		if !slices.Equal(homeless, want) {
			t.Errorf("pools loss %s leaves %v without place, want %v: %+v", args, homeless, want, losses)
		}
	}
	for _, step := range []struct {
		lost    string
		pending int
	}{{"a0", 3}, {"a1", 5}} {
		gone := []string{w.name + "-" + step.lost}
		w.lose(t, gone)
		framework.Eventually(t, fmt.Sprintf("after the loss of %s, the scheduler finds no place for %d pods", step.lost, step.pending), func() error {
			if pending := w.settle(t, gone, 7); len(pending) != step.pending {
				return fmt.Errorf("it finds none for %d: %s", len(pending), messages(pending))
			}
			return nil
		})
		w.assertPending(t, step.pending, expected{onEmptyNode: -1})
	}
}

// messages returns the scheduler's messages about pods, for the message of a failed test.
func messages(pods []corev1.Pod) (all []string) {
	for i := range pods {
		all = append(all, pods[i].Name+": "+unschedulable(&pods[i]))
	}
	return all
}

// lossArgs returns the arguments of pools loss, with the full names of the nodes and zones.
func (w *storageWorld) lossArgs(short string) []string {
	args := []string{"pools", "loss"}
	for i, arg := range strings.Fields(short) {
		if arg == "--zone" && i == 0 {
			args = append(args, w.name)
		}
		if !strings.HasPrefix(arg, "--") {
			arg = w.name + "-" + strings.ReplaceAll(arg, ",", ","+w.name+"-")
		}
		args = append(args, arg)
	}
	return args
}

// TestPendingWhileClaimsChange compares pools pending with the scheduler while a pod waits, and its
// claim is created, bound in a zone without room, deleted, and created again.
func TestPendingWhileClaimsChange(t *testing.T) {
	w := newStorageWorld(t, "waits", storageNode{"a0", "a", 5, false}, storageNode{"b0", "b", 5, false})
	full := w.pod("2")
	full.NodeName = w.name + "-a0"
	cluster.Apply(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: w.name}, Spec: full})
	w.create(t, w.pod("3", "late"), 1)
	waits := func(why, answered string, onEmptyNode int64) {
		t.Helper()
		framework.Eventually(t, "the scheduler waits for "+why, func() error {
			return w.settled(t, func(s tally) error {
				if s.placed > 0 || !strings.Contains(s.why, why) {
					return fmt.Errorf("%+v", s)
				}
				return nil
			})
		})
		synced(t)
		groups := slices.DeleteFunc(w.pending(t, 2), func(g pendingGroup) bool { return g.Namespace != w.name })
		if len(groups) != 1 || len(groups[0].Pools) != 1 {
			t.Fatalf("while the scheduler waits for %q, pools pending says %+v", why, groups)
		}
		p := groups[0].Pools[0]
		if p.Copies != 0 || len(p.AtMost) > 0 || p.OnEmptyNode != onEmptyNode || answered != "" && p.Answer != answered {
			t.Errorf("while the scheduler waits for %q, pools pending says %+v, want %d on an empty node", why, p, onEmptyNode)
		}
	}
	waits("not found", "", 0)
	w.unbound(t, "late", w.storageClass(t, "immediate", w.driver(), storagev1.VolumeBindingImmediate))
	waits("unbound immediate", "", 0)
	w.remove(t, "late")
	waits("not found", "", 0)
	w.bind(t, w.claim(t, "late", corev1.ReadWriteOnce), w.zone("a"))
	waits("Insufficient cpu", "FitsAnEmptyNode", 1)
	w.remove(t, "late")
	waits("not found", "", 0)
	c := w.claim(t, "late", corev1.ReadWriteOnce)
	framework.Eventually(t, "the old volume is gone", func() error {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-late"}}
		if err := cluster.Client.Delete(t.Context(), pv); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	w.bind(t, c, w.zone("b"))
	expected{on: map[string]int64{"b0": 1}}.places(t, w, 0)
	w.assertPending(t, 0, expected{})
}

// remove deletes a claim that no running pod uses, and waits until it is gone.
func (w *storageWorld) remove(t *testing.T, name string) {
	t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}}
	cluster.Delete(t, c)
	framework.Eventually(t, name+" is gone", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(c), c); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			return fmt.Errorf("it is %s", c.Status.Phase)
		}
		return nil
	})
}

// bindToNodes creates a claim that is bound to a volume for the given nodes.
func (w *storageWorld) bindToNodes(t *testing.T, name string, nodes ...string) {
	t.Helper()
	c := w.claim(t, name, corev1.ReadWriteOnce)
	pv := w.volumeFor(c)
	pv.Spec.CSI, pv.Spec.NodeAffinity = &corev1.CSIPersistentVolumeSource{Driver: w.driver(), VolumeHandle: name}, w.onNodes(nodes...)
	createVolume(t, pv)
	w.bind(t, c, "")
}

// assertPending checks that pools pending has each pod that the scheduler finds no node for, and that
// none of the world's refused pods fits now.
func (w *storageWorld) assertPending(t *testing.T, refused int, e expected) {
	t.Helper()
	synced(t)
	groups := w.pending(t, 2)
	all := &corev1.PodList{}
	if err := cluster.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	want, listed, own := 0, 0, 0
	for i := range all.Items {
		if unschedulable(&all.Items[i]) != "" {
			want++
		}
	}
	for _, g := range groups {
		listed += len(g.Pods)
		if g.Namespace != w.name {
			continue
		}
		own += len(g.Pods)
		if len(g.Pools) != 1 || g.Pools[0].Copies > 0 && len(g.Pools[0].AtMost) == 0 {
			t.Errorf("pools pending says %+v about pods that the scheduler finds no node for", g)
		} else if !e.atMost && !e.mayBeAtMost && e.onEmptyNode == 0 && g.Pools[0].OnEmptyNode > 0 {
			t.Errorf("pools pending says %+v about pods that never fit", g)
		}
	}
	if listed != want || own != refused {
		t.Errorf("pools pending has %d pods, %d of the world, want %d and %d: %+v", listed, own, want, refused, groups)
	}
}
