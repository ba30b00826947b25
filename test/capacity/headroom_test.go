// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// askHeadroom sets the headroom in the spec of the world's pool.
func (w *world) askHeadroom(t *testing.T, nodes, zones bool) {
	t.Helper()
	pool := framework.Pool(w.name)
	cluster.Change(t, pool, func() {
		pool.Spec.Headroom = &tidekeeperv1.Headroom{}
		if nodes {
			pool.Spec.Headroom.Nodes = 1
		}
		if zones {
			pool.Spec.Headroom.Zones = 1
		}
	})
}

// headroom returns a pool's condition Headroom if it was observed for the current generation, or an
// error.
func headroom(t *testing.T, pool string) (metav1.Condition, error) {
	t.Helper()
	p := framework.Pool(pool)
	cluster.Refresh(t, p)
	c := meta.FindStatusCondition(p.Status.Conditions, tidekeeperv1.ConditionHeadroom)
	switch {
	case c == nil:
		return metav1.Condition{}, errors.New(pool + " has no condition Headroom")
	case c.ObservedGeneration != p.Generation:
		return *c, fmt.Errorf("%s: the condition is about generation %d, not %d: %+v", pool, c.ObservedGeneration, p.Generation, *c)
	}
	return *c, nil
}

// headroomBecomes waits until a pool's condition Headroom has the given reason, and returns the
// condition.
func headroomBecomes(t *testing.T, pool, reason string) (c metav1.Condition) {
	t.Helper()
	status := map[string]metav1.ConditionStatus{"EnoughRoom": metav1.ConditionTrue, "NoPlace": metav1.ConditionFalse}
	framework.Eventually(t, pool+" has the headroom "+reason, func() (err error) {
		if c, err = headroom(t, pool); err != nil {
			return err
		}
		if c.Reason != reason || c.Status != cmp.Or(status[reason], metav1.ConditionUnknown) {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	return c
}

// TestRoomAndHeadroom runs the tests that share a manager, in parallel.
func TestRoomAndHeadroom(t *testing.T) {
	manager := cluster.StartManager(t, "--status-interval=1s")
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *framework.Manager){
			"Room": testRoom, "FitOfEachResource": testFitOfEachResource, "Headroom": testHeadroom, "FollowsEdits": testHeadroomFollowsEdits,
			"OfDeletedPool": testHeadroomOfDeletedPool, "HostileTenants": testHeadroomHostileTenants, "AtRest": testHeadroomAtRest,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, manager)
			})
		}
	})
	manager.AssertSound(t)
}

// testHeadroom compares the condition Headroom with the best of all placements. The condition may
// be True only if there is a placement after each loss. If it is False, its loss and number must
// agree with pools loss. If all pods are equal, the scheduler must leave the same number of pods
// unschedulable.
func testHeadroom(t *testing.T, manager *framework.Manager) {
	alike := map[string]bool{}
	worlds := someWorlds(t, "head", func(w *world) {
		w.addNodes(t, 4+w.IntN(3))
		if w.chance(70) {
			for _, zone := range []string{"-a", "-b", "-c"} {
				w.addPlain(t, w.name+"-large"+zone, w.name+zone)
			}
			w.awaitNodes(t)
		}
		alike[w.name] = w.chance(50)
		if !alike[w.name] {
			w.deployChoosy(t)
		}
		w.deploy(t, alike[w.name])
		nodes := w.chance(60)
		w.askHeadroom(t, nodes, !nodes || w.chance(50))
	})
	enough := 0
	for _, w := range worlds {
		losses, worst := w.losses(t)
		var c metav1.Condition
		framework.Eventually(t, w.name+" has the right headroom", func() (err error) {
			if c, err = headroom(t, w.name); err != nil {
				return err
			}
			if (worst > 0) != (c.Reason == "NoPlace") || (worst == 0) != (c.Status == metav1.ConditionTrue) {
				return fmt.Errorf("pools loss leaves %d without place, and the condition is %+v", worst, c)
			}
			value, has := manager.ReadMetrics(t).Value("tidekeeper_nodepool_headroom", map[string]string{"pool": w.name})
			if !has || (value == 1) != (worst == 0) {
				return fmt.Errorf("the metric is %v, %t", value, has)
			}
			return nil
		})
		t.Log(w.name, c.Status, c.Message)
		gone := oneOf(w, losses...)
		if worst == 0 {
			enough++
			for _, l := range losses {
				lost, left := w.split(t, l.Nodes)
				if least := leastWithoutPlace(w, lost, left, l.Nodes); least > 0 {
					t.Errorf("%s: the headroom is True, and the loss of %s leaves at least %d of its pods without place\n%s", w.name, l.Lost, least, w.describe(corev1.PodSpec{}))
				}
			}
		} else if gone = named(losses, c.Message); gone.Lost == "" || !hasNumber(c.Message, gone.homeless()) {
			t.Errorf("%s: %q names no loss and number of %+v", w.name, c.Message, losses)
			continue
		}
		lost, left := w.split(t, gone.Nodes)
		w.lose(t, gone.Nodes)
		pending := w.settle(t, gone.Nodes, len(lost)+len(left))
		if alike[w.name] && len(pending) != gone.homeless() {
			t.Errorf("%s: %q, and after the loss of %s the scheduler leaves %d without place, and all pods are alike", w.name, c.Message, gone.Lost, len(pending))
		}
	}
	t.Logf("%d of %d worlds have headroom", enough, len(worlds))
	manager.AssertSound(t)
}

// deployChoosy creates Deployments whose pods select nodes by node affinity and request GPUs.
func (w *world) deployChoosy(t *testing.T) {
	t.Helper()
	for i := range 2 {
		spec := w.small()
		spec.Affinity = w.affinity()
		if w.chance(40) {
			spec.Containers[0] = container("app", list("cpu", "100m", gpu, "1"))
		}
		d := framework.Deployment(fmt.Sprint("choosy-", i), int32(1+w.IntN(2)), spec)
		d.Namespace = w.name
		cluster.Apply(t, d)
	}
}

// losses runs pools loss for each loss in the pool's spec.headroom. It returns the losses, and the
// largest number of pods that fit nowhere after one of them.
func (w *world) losses(t *testing.T) (losses []loss, worst int) {
	t.Helper()
	pool := framework.Pool(w.name)
	cluster.Refresh(t, pool)
	ask := func(args ...string) {
		var one []loss
		answer(t, &one, "", append([]string{"pools", "loss"}, args...), 2)
		losses = append(losses, one...)
		for _, l := range one {
			worst = max(worst, l.homeless())
		}
	}
	zones := map[string]bool{}
	for _, n := range w.nodes {
		if pool.Spec.Headroom.Nodes > 0 {
			ask("--node", n.Name)
		}
		if zone := n.Labels[corev1.LabelTopologyZone]; pool.Spec.Headroom.Zones > 0 && !zones[zone] {
			zones[zone] = true
			ask(w.name, "--zone", zone)
		}
	}
	return losses, worst
}

// named returns the loss that a condition's message names.
func named(losses []loss, message string) (found loss) {
	for _, l := range losses {
		name := strings.TrimPrefix(l.Lost, "zone ")
		if name == l.Lost {
			name = l.Nodes[0]
		}
		if slices.ContainsFunc(strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" ,:;\"()", r) }), func(word string) bool { return word == name }) {
			found = l
		}
	}
	return found
}

// hasNumber reports whether the string contains the number as a separate word.
func hasNumber(text string, n int) bool {
	return slices.Contains(strings.Fields(text), strconv.Itoa(n))
}
