// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/test/setting"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// someWorlds creates a few random worlds one after the other, calls `build` for each, and returns
// the worlds. A single manager evaluates all of them.
func someWorlds(t *testing.T, prefix string, build func(*world)) (worlds []*world) {
	t.Helper()
	first := setting.Number(t, "SEED", 1, 0)
	for i := range max(1, setting.Number(t, "CASES", 20, 1)/5) {
		seed := first + i
		w := newWorld(t, fmt.Sprintf("%s-%d", prefix, seed), rand.New(rand.NewPCG(uint64(seed), uint64(len(prefix)))))
		build(w)
		worlds = append(worlds, w)
	}
	return worlds
}

// testRoom checks that a pool's status shows the usable resources that follow from the pool's nodes
// and pods, and that the scheduler can place a pod of the size of each largest fit, but no larger
// pod.
func testRoom(t *testing.T, manager *framework.Manager) {
	worlds := someWorlds(t, "room", func(w *world) {
		w.addNodes(t, 4+w.IntN(4))
		w.occupy(t)
		w.spoil(t)
	})
	for _, w := range worlds {
		framework.Eventually(t, w.name+" has the right status", func() error {
			pool := framework.Pool(w.name)
			cluster.Refresh(t, pool)
			r := w.room(t)
			metrics, err := manager.TryMetrics()
			return errors.Join(err, r.is(pool.Status), r.isMeasured(w.name, metrics), short(pool))
		})
	}
	for _, w := range worlds {
		w.fill(t)
	}
	manager.AssertSound(t)
}

// testFitOfEachResource checks that a node with the largest free amount of a resource other than
// CPU and memory also appears as a largest fit, and that the metric has a series for that resource.
func testFitOfEachResource(t *testing.T, manager *framework.Manager) {
	w := newWorld(t, "storage", rand.New(rand.NewPCG(1, 1)))
	for i, allocatable := range []corev1.ResourceList{list("cpu", "4", "memory", "4Gi", "pods", "10"), list("cpu", "1", "memory", "1Gi", "pods", "10", "example.com/disk", "100")} {
		n := framework.Node(fmt.Sprint("storage-", i))
		n.Labels = map[string]string{worldLabel: w.name, corev1.LabelHostname: n.Name}
		n.Status.Allocatable = allocatable
		w.addNode(t, n)
	}
	framework.EventuallyWithin(t, 4*framework.Patience, "each node is a largest fit", func() error {
		pool := framework.Pool(w.name)
		cluster.Refresh(t, pool)
		var err error
		if len(pool.Status.LargestFits) != 2 {
			err = fmt.Errorf("largest fits are %+v", pool.Status.LargestFits)
		}
		if _, has := manager.ReadMetrics(t).Value("tidekeeper_nodepool_largest_fit", map[string]string{"pool": w.name, "resource": "example.com/disk"}); !has {
			err = errors.Join(err, errors.New("no metric of example.com/disk"))
		}
		return err
	})
}

// spoil makes some nodes unusable for new pods, each for a different reason.
func (w *world) spoil(t *testing.T) {
	t.Helper()
	for i := range w.nodes {
		n := w.nodes[i].DeepCopy()
		switch w.IntN(9) {
		case 0:
			cluster.ChangeStatus(t, n, func() { n.Status.Conditions[0].Status = oneOf(w, corev1.ConditionFalse, corev1.ConditionUnknown) })
		case 1:
			cluster.Change(t, n, func() { n.Finalizers = []string{"example.com/hold"} })
			cluster.Delete(t, n)
			t.Cleanup(func() {
				patch := client.MergeFrom(n.DeepCopy())
				n.Finalizers = nil
				if err := cluster.Patch(context.WithoutCancel(t.Context()), n, patch); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			})
		case 2:
			for range n.Status.Allocatable.Pods().Value() {
				w.run(t, n.Name, list("cpu", oneOf(w, "", "50m"), "memory", oneOf(w, "", "10Mi")))
			}
		}
	}
	w.awaitPods(t)
}

// run binds a pod to a node, bypassing the scheduler.
func (w *world) run(t *testing.T, node string, requests corev1.ResourceList) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("running-", w.pods), Namespace: w.name, Labels: map[string]string{"app": "running"}},
		Spec:       corev1.PodSpec{NodeName: node, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{container("app", requests)}},
	}
	if err := cluster.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.pods++
}

// fill starts a pod of the size of each of the pool's largest fits. Before each, it checks that a
// pod that requests a millicore more cannot start.
func (w *world) fill(t *testing.T) {
	t.Helper()
	pool := framework.Pool(w.name)
	cluster.Refresh(t, pool)
	for _, fit := range pool.Status.LargestFits {
		spec := w.plain()
		spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: fit.Resources.DeepCopy(), Limits: limitsOf(fit.Resources)}
		requests := spec.Containers[0].Resources.Requests
		delete(requests, corev1.ResourcePods)
		spec.NodeSelector[corev1.LabelHostname] = fit.Node
		larger := *spec.DeepCopy()
		cpu := fit.Resources.Cpu().DeepCopy()
		cpu.Add(resource.MustParse("1m"))
		larger.Containers[0].Resources.Requests[corev1.ResourceCPU] = cpu
		before, _ := w.copies(t, larger, 0)
		if got, _ := w.copies(t, larger, 1); got != before {
			t.Errorf("%s: a pod with 1m more than the largest fit %+v starts\n%s", w.name, fit, w.describe(larger))
		}
		if got, reason := w.copies(t, spec, 1); got != before+1 {
			t.Errorf("%s: the largest fit %+v is none: %s\n%s", w.name, fit, reason, w.describe(spec))
		}
	}
}

// room holds a pool's usable resources, as computed by the test from the nodes and pods.
type room struct {
	nodes        int32
	usable, free corev1.ResourceList
	lost         map[tidekeeperv1.LostCause]tidekeeperv1.Lost
	freeOn       map[string]corev1.ResourceList
}

// room computes the world's usable resources from its nodes and pods.
func (w *world) room(t *testing.T) room {
	t.Helper()
	pool, nodes, pods := framework.Pool(w.name), &corev1.NodeList{}, &corev1.PodList{}
	cluster.Refresh(t, pool)
	if err := errors.Join(cluster.List(t.Context(), nodes, client.MatchingLabels{worldLabel: w.name}), cluster.List(t.Context(), pods)); err != nil {
		t.Fatal(err)
	}
	r := room{usable: corev1.ResourceList{}, free: corev1.ResourceList{}, lost: map[tidekeeperv1.LostCause]tidekeeperv1.Lost{}, freeOn: map[string]corev1.ResourceList{}}
	for _, n := range nodes.Items {
		requested := requestedOn(n.Name, pods.Items)
		free, usable := corev1.ResourceList{}, n.Status.Allocatable.DeepCopy()
		for name, q := range n.Status.Allocatable {
			q.Sub(requested[name])
			if q.Sign() < 0 {
				q = resource.Quantity{}
			}
			free[name] = q
		}
		cause := causeOf(n, requested, pool.Spec.Taints)
		if cause == "" {
			r.nodes++
			r.freeOn[n.Name] = free
			add(r.usable, usable)
			add(r.free, free)
			continue
		}
		lost := r.lost[cause]
		if lost.Resources == nil {
			lost = tidekeeperv1.Lost{Cause: cause, Resources: corev1.ResourceList{}}
		}
		lost.Nodes++
		if cause != tidekeeperv1.LostPodLimitReached {
			free = usable
		} else {
			for name, q := range free {
				rest := usable[name].DeepCopy()
				rest.Sub(q)
				usable[name] = rest
			}
			add(r.usable, usable)
		}
		add(lost.Resources, free)
		r.lost[cause] = lost
	}
	return r
}

// causeOf returns the reason why new pods cannot use a node, or "" if they can.
func causeOf(n corev1.Node, requested corev1.ResourceList, own []tidekeeperv1.Taint) tidekeeperv1.LostCause {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	foreign := slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(own, func(o tidekeeperv1.Taint) bool {
			return o.Key == taint.Key && o.Effect == taint.Effect && string(o.Value) == taint.Value
		})
	})
	switch {
	case n.DeletionTimestamp != nil:
		return tidekeeperv1.LostBeingDeleted
	case !ready:
		return tidekeeperv1.LostNotReady
	case n.Spec.Unschedulable:
		return tidekeeperv1.LostCordoned
	case foreign:
		return tidekeeperv1.LostOtherTaint
	case requested.Pods().Cmp(*n.Status.Allocatable.Pods()) >= 0:
		return tidekeeperv1.LostPodLimitReached
	}
	return ""
}

// requestedOn sums the requests of the non-terminated pods on a node.
func requestedOn(node string, pods []corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, p := range pods {
		if p.Spec.NodeName != node || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		one := list("pods", "1")
		for _, c := range p.Spec.Containers {
			add(one, c.Resources.Requests)
		}
		for _, c := range p.Spec.InitContainers {
			for name, q := range c.Resources.Requests {
				if has := one[name]; q.Cmp(has) > 0 {
					one[name] = q
				}
			}
		}
		add(sum, one)
	}
	return sum
}

func add(to, amounts corev1.ResourceList) {
	for name, q := range amounts {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

// is returns nil if the pool's status agrees with the computed resources.
func (r room) is(s tidekeeperv1.NodePoolStatus) error {
	err := errors.Join(same("usable", r.usable, s.Usable), same("free", r.free, s.Free))
	if s.UsableNodes != r.nodes {
		err = errors.Join(err, fmt.Errorf("usableNodes is %d, want %d", s.UsableNodes, r.nodes))
	}
	if len(s.Lost) != len(r.lost) {
		err = errors.Join(err, fmt.Errorf("lost is %+v, want %+v", s.Lost, r.lost))
	}
	for _, l := range s.Lost {
		if want := r.lost[l.Cause]; l.Nodes != want.Nodes {
			err = errors.Join(err, fmt.Errorf("%d nodes are %s, want %d", l.Nodes, l.Cause, want.Nodes))
		}
		err = errors.Join(err, same(string(l.Cause), r.lost[l.Cause].Resources, l.Resources))
	}
	most := corev1.ResourceList{}
	for _, fit := range s.LargestFits {
		free, usable := r.freeOn[fit.Node]
		if !usable {
			err = errors.Join(err, fmt.Errorf("a largest fit is on %s, which cannot be used", fit.Node))
		}
		err = errors.Join(err, same("the largest fit on "+fit.Node, free, fit.Resources))
		larger(most, fit.Resources)
	}
	if len(s.LargestFits) > 4 {
		err = errors.Join(err, fmt.Errorf("%d largest fits", len(s.LargestFits)))
	} else if len(s.LargestFits) < 4 {
		err = errors.Join(err, same("the largest fits", placed(r.largest()), placed(most)))
	}
	return err
}

// largest returns, for each resource, the largest amount that is free on a single node.
func (r room) largest() corev1.ResourceList {
	most := corev1.ResourceList{}
	for _, free := range r.freeOn {
		larger(most, free)
	}
	return most
}

func larger(most, than corev1.ResourceList) {
	for name, q := range than {
		if has := most[name]; q.Cmp(has) > 0 {
			most[name] = q
		}
	}
}

// placed returns the resource list without the number of pods and without ephemeral storage, which
// the tests' pods do not request.
func placed(of corev1.ResourceList) corev1.ResourceList {
	delete(of, corev1.ResourcePods)
	delete(of, corev1.ResourceEphemeralStorage)
	return of
}

// isMeasured returns nil if a pool's metrics agree with the computed resources.
func (r room) isMeasured(pool string, m framework.Metrics) (err error) {
	gauge := func(name, kind, value string, want corev1.ResourceList) {
		for of, q := range want {
			labels := map[string]string{"pool": pool, "resource": string(of)}
			if kind != "" {
				labels[kind] = value
			}
			got, _ := m.Value(name, labels)
			if d := got - q.AsApproximateFloat64(); d > 1e-6 || d < -1e-6 {
				err = errors.Join(err, fmt.Errorf("%s%v is %v, want %s", name, labels, got, &q))
			}
		}
	}
	gauge("tidekeeper_nodepool_resource", "kind", "usable", r.usable)
	gauge("tidekeeper_nodepool_resource", "kind", "free", r.free)
	gauge("tidekeeper_nodepool_largest_fit", "", "", placed(r.largest()))
	for cause, lost := range r.lost {
		gauge("tidekeeper_nodepool_lost", "cause", string(cause), lost.Resources)
	}
	return err
}

// same returns nil if two resource lists have the same amounts. A missing resource counts as 0.
func same(what string, want, got corev1.ResourceList) (err error) {
	names := map[corev1.ResourceName]bool{}
	for _, l := range []corev1.ResourceList{want, got} {
		for name := range l {
			names[name] = true
		}
	}
	for name := range names {
		if w, g := want[name], got[name]; w.Cmp(g) != 0 {
			err = errors.Join(err, fmt.Errorf("%s: %s of %s, want %s", what, cmp.Or(g.String(), "0"), name, cmp.Or(w.String(), "0")))
		}
	}
	return err
}

// short returns nil if a pool's status is smaller than 8 KiB.
func short(pool *tidekeeperv1.NodePool) error {
	text, err := json.Marshal(pool.Status)
	if err == nil && len(text) >= 8<<10 {
		err = fmt.Errorf("the status of %s has %d bytes", pool.Name, len(text))
	}
	return err
}
