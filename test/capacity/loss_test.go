// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// loss is a single loss in the output of pools loss -o json.
type loss struct {
	Lost         string
	Nodes        []string
	Pods         int
	Unmanaged    int
	AtMost       []string
	WithoutPlace []struct {
		Namespace, Workload string
		Pods                int
	}
}

func (l loss) homeless() (sum int) {
	for _, w := range l.WithoutPlace {
		sum += w.Pods
	}
	return sum
}

// TestLoss compares pools loss with the control plane. After the loss of a node or a zone,
// controllers recreate the lost pods, and the scheduler places them. The scheduler places pods in
// the order of their creation and spreads them, while pools loss begins with the largest pod. Each
// may therefore find no place for a pod for which the other has found one. Hence, for any answer of
// pools loss:
//   - it names at least as many pods as fit nowhere in the best of all placements,
//   - no node has room for a pod that the scheduler finds unschedulable,
//   - if all pods are equal, so that the order does not matter, both find no place for the same number.
func TestLoss(t *testing.T) {
	var same, more, fewer, best, short atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		inWorlds(t, "loss", func(t *testing.T, w *world) {
			w.addNodes(t, 3+w.IntN(3))
			alike := w.chance(40)
			w.deploy(t, alike)
			says, gone := w.askLoss(t)
			lost, left := w.split(t, gone)
			if len(lost) != says.Pods {
				t.Fatalf("%d pods are on what is lost, and pools loss says %d", len(lost), says.Pods)
			}
			least := leastWithoutPlace(w, lost, left, gone)
			w.lose(t, gone)
			pending := w.settle(t, gone, len(lost)+len(left))
			for _, p := range pending {
				if f := w.fit(t, "", "--like", "pod/"+p.Name); f.Copies > 0 || len(f.AtMost) > 0 {
					t.Errorf("the scheduler finds no node for %s (%s), and pools fit has room for %d", p.Name, unschedulable(&p), f.Copies)
				}
			}
			switch n := says.homeless(); {
			case n < least:
				t.Errorf("pools loss leaves %d pods without place, and each placement leaves at least %d", n, least)
			case alike && n != len(pending):
				t.Errorf("pools loss leaves %d pods without place, the scheduler %d, and all pods are alike", n, len(pending))
			case n == len(pending):
				same.Add(1)
			case n < len(pending):
				fewer.Add(1)
			default:
				more.Add(1)
			}
			if says.homeless() > 0 {
				short.Add(1)
			}
			if says.homeless() == least {
				best.Add(1)
			}
			if t.Failed() {
				t.Logf("the loss of %s: %+v\n%s", gone, says, w.describe(corev1.PodSpec{}))
			}
		})
	})
	t.Logf("pods are without place in %d worlds; as many as the scheduler leaves in %d, fewer in %d, more in %d; the least possible in %d",
		short.Load(), same.Load(), fewer.Load(), more.Load(), best.Load())
}

// deploy creates Deployments with random pods, and scales them down to the pods that the scheduler
// can place.
func (w *world) deploy(t *testing.T, alike bool) {
	t.Helper()
	shapes := []corev1.PodSpec{w.small()}
	for range 3 {
		if !alike {
			shapes = append(shapes, w.small())
		}
	}
	alone := 0
	if w.chance(50) {
		alone = 1
		w.overcommit(t)
	}
	for i := range 4 {
		labels := map[string]string{"app": fmt.Sprint("web-", i)}
		cluster.Apply(t, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: labels["app"], Namespace: w.name},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1 + w.IntN(3))), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: shapes[i%len(shapes)]},
			},
		})
	}
	var deployments appsv1.DeploymentList
	framework.Eventually(t, "the Deployments have the pods that the scheduler places", func() error {
		if err := cluster.List(t.Context(), &deployments, client.InNamespace(w.name)); err != nil {
			return err
		}
		total := alone
		for i := range deployments.Items {
			d := &deployments.Items[i]
			pods := w.podsOf(t, client.MatchingLabels{"app": d.Name})
			pending := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Spec.NodeName != "" })
			switch {
			case d.Status.ObservedGeneration != d.Generation || len(pods) != int(*d.Spec.Replicas):
				return fmt.Errorf("%s has %d pods", d.Name, len(pods))
			case slices.ContainsFunc(pending, func(p corev1.Pod) bool { return unschedulable(&p) == "" }):
				return fmt.Errorf("the scheduler has not tried all pods of %s", d.Name)
			case len(pending) > 0:
				// The ReplicaSet controller deletes pods without a node first.
				cluster.Change(t, d, func() { d.Spec.Replicas = new(int32(len(pods) - len(pending))) })
				return fmt.Errorf("%s has pods without a node", d.Name)
			}
			total += len(pods)
		}
		w.pods = total
		return nil
	})
	w.awaitPods(t)
}

// overcommit binds a pod without a controller to a node, bypassing the scheduler. The pod requests
// more memory than the node has.
func (w *world) overcommit(t *testing.T) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: w.name},
		Spec: corev1.PodSpec{
			NodeName: oneOf(w, w.nodes...).Name, Containers: []corev1.Container{container("app", list("memory", "8Gi"))},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	if err := cluster.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// small returns a random pod spec that fits on most nodes.
func (w *world) small() corev1.PodSpec {
	s := corev1.PodSpec{
		NodeSelector: map[string]string{worldLabel: w.name}, TerminationGracePeriodSeconds: new(int64(0)),
		Containers:  []corev1.Container{container("app", list("cpu", oneOf(w, "100m", "300m", "500m", "800m"), "memory", oneOf(w, "", "64Mi", "200Mi", "600Mi")))},
		Tolerations: []corev1.Toleration{{Key: "example.com/pool", Operator: corev1.TolerationOpExists}},
	}
	for _, taint := range taints {
		if w.chance(60) {
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists})
		}
	}
	if w.chance(25) {
		s.NodeSelector["disk"] = "ssd"
	}
	return s
}

// podsOf returns the world's non-terminating pods.
func (w *world) podsOf(t *testing.T, options ...client.ListOption) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := cluster.List(t.Context(), pods, append(options, client.InNamespace(w.name))...); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// askLoss runs pools loss for a random choice of one node, two nodes or a zone. It returns the loss
// and the names of the nodes.
func (w *world) askLoss(t *testing.T) (l loss, gone []string) {
	t.Helper()
	args := []string{"pools", "loss"}
	n := oneOf(w, w.nodes...)
	if w.chance(50) {
		zone := n.Labels[corev1.LabelTopologyZone]
		args = append(args, w.name, "--zone", zone)
		for _, n := range w.nodes {
			if n.Labels[corev1.LabelTopologyZone] == zone {
				gone = append(gone, n.Name)
			}
		}
	} else {
		gone = []string{n.Name}
		if another := oneOf(w, w.nodes...).Name; another != n.Name && w.chance(50) {
			gone = append(gone, another)
		}
		for _, name := range gone {
			args = append(args, "--node", name)
		}
	}
	var losses []loss
	answer(t, &losses, "", args, 2)
	slices.Sort(gone)
	if len(losses) != 1 || !slices.Equal(losses[0].Nodes, gone) {
		t.Fatalf("kubectl tide %s prints %+v, want one loss of %s", args, losses, gone)
	}
	return losses[0], gone
}

// split returns the pods on the lost nodes that have a controller, and all pods on the remaining
// nodes.
func (w *world) split(t *testing.T, gone []string) (lost, left []corev1.Pod) {
	t.Helper()
	for _, p := range w.podsOf(t) {
		switch {
		case slices.Contains(gone, p.Spec.NodeName) && metav1.GetControllerOf(&p) == nil:
		case slices.Contains(gone, p.Spec.NodeName):
			lost = append(lost, p)
		default:
			left = append(left, p)
		}
	}
	return lost, left
}

// lose deletes the given nodes.
func (w *world) lose(t *testing.T, gone []string) {
	t.Helper()
	for _, name := range gone {
		cluster.Delete(t, framework.Node(name))
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(n corev1.Node) bool { return slices.Contains(gone, n.Name) })
}

// settle waits until the controllers have recreated the pods, `total` in number, and the scheduler
// has tried to place each of them. It returns the pods without a node. It deletes pods on lost
// nodes, because the pod garbage collector would take a minute.
func (w *world) settle(t *testing.T, gone []string, total int) (pending []corev1.Pod) {
	t.Helper()
	framework.Eventually(t, "the scheduler has tried each pod that was created again", func() error {
		pods := w.podsOf(t)
		pending = nil
		for i := range pods {
			p := &pods[i]
			switch {
			case slices.Contains(gone, p.Spec.NodeName):
				if err := cluster.Client.Delete(t.Context(), p, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
					return err
				}
				return fmt.Errorf("%s is on %s", p.Name, p.Spec.NodeName)
			case p.Spec.NodeName == "" && unschedulable(p) == "":
				return fmt.Errorf("%s has not been tried", p.Name)
			case p.Spec.NodeName == "":
				pending = append(pending, *p)
			}
		}
		if len(pods) != total {
			return fmt.Errorf("%d of %d pods", len(pods), total)
		}
		return nil
	})
	w.pods = total
	w.awaitPods(t)
	return pending
}
