// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// twoNodes creates a world of two nodes with 2 CPUs each in two zones, whose only taint is the
// pool's, and a Deployment with the given number of pods that request 1 CPU each. With 2 pods, the
// pods of a lost node fit on the other node; with 3 pods they do not.
func twoNodes(t *testing.T, name string, pods int32) *world {
	t.Helper()
	w := newWorld(t, name, rand.New(rand.NewPCG(1, 1)))
	for i := range 2 {
		w.addPlain(t, fmt.Sprint(name, "-", i), fmt.Sprint(name, "-z", i))
	}
	w.awaitNodes(t)
	d := framework.Deployment("web", pods, corev1.PodSpec{
		NodeSelector: map[string]string{worldLabel: name}, TerminationGracePeriodSeconds: new(int64(0)),
		Tolerations: []corev1.Toleration{{Key: "example.com/pool", Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{container("app", list("cpu", "1"))},
	})
	d.Namespace = name
	cluster.Apply(t, d)
	w.running(t, int(pods))
	return w
}

// addPlain adds a node with 2 CPUs in the given zone; an empty string means that the node has no
// zone.
func (w *world) addPlain(t *testing.T, name, zone string) {
	t.Helper()
	n := framework.Node(name)
	n.Labels = map[string]string{worldLabel: w.name, corev1.LabelHostname: n.Name, "disk": "ssd"}
	if zone != "" {
		n.Labels[corev1.LabelTopologyZone] = zone
	}
	n.Status.Allocatable = list("cpu", "2", "memory", "4Gi", "pods", "100")
	w.addNode(t, n)
}

// scale changes the Deployment's number of pods, and waits until all are assigned to nodes.
func (w *world) scale(t *testing.T, pods int) {
	t.Helper()
	d := framework.Deployment("web", 0, corev1.PodSpec{})
	d.Namespace = w.name
	cluster.Change(t, d, func() { d.Spec.Replicas = new(int32(pods)) })
	w.running(t, pods)
}

// running waits until the Deployment has the given number of pods, all assigned to nodes.
func (w *world) running(t *testing.T, pods int) {
	t.Helper()
	framework.Eventually(t, "the pods have nodes", func() error {
		all := w.podsOf(t, client.MatchingLabels{"app": "web"})
		placed := slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
		if len(all) != pods || len(placed) != pods {
			return fmt.Errorf("%d of %d pods, want %d", len(placed), len(all), pods)
		}
		return nil
	})
}

// edit makes two changes to a world of two nodes and three pods, each of which requests half a
// node. The pool's spec requests headroom for nodes and zones. after and then are the condition's
// reasons after the first and the second change.
type edit struct {
	name          string
	first, second func(t *testing.T, w *world)
	after, then   string
}

// flip edits a pool's headroom many times, and finally sets it to `last`.
func flip(last *tidekeeperv1.Headroom) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		pool := framework.Pool(w.name)
		for range 5 {
			for _, h := range []*tidekeeperv1.Headroom{{Nodes: 1}, nil, {Zones: 1}, {Nodes: 1, Zones: 1}, last} {
				cluster.Change(t, pool, func() { pool.Spec.Headroom = h })
			}
		}
	}
}

// zoned moves the world's nodes to the given zones; an empty string means that a node has no zone.
func zoned(zones ...string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		for i, zone := range zones {
			n := framework.Node(w.nodes[i].Name)
			cluster.Change(t, n, func() {
				delete(n.Labels, corev1.LabelTopologyZone)
				if zone != "" {
					n.Labels[corev1.LabelTopologyZone] = zone
				}
			})
		}
	}
}

// selecting edits a pool's selector several times. In the end the pool selects the nodes of the
// world `other`, or the nodes of its own world if `other` is empty.
func selecting(other string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		pool := framework.Pool(w.name)
		for _, value := range []string{"none", w.name, "none", cmp.Or(other, w.name)} {
			cluster.Change(t, pool, func() { pool.Spec.Selector.MatchLabels[worldLabel] = tidekeeperv1.LabelValue(value) })
		}
	}
}

// enlarge adds two nodes in another zone.
func enlarge(t *testing.T, w *world) {
	t.Helper()
	w.addPlain(t, w.name+"-2", w.name+"-z2")
	w.addPlain(t, w.name+"-3", w.name+"-z2")
	w.addPlain(t, w.name+"-4", w.name+"-z3")
	w.addPlain(t, w.name+"-5", w.name+"-z3")
}

// flap cordons and uncordons the nodes that [enlarge] has added, and leaves them cordoned.
func flap(t *testing.T, w *world) {
	t.Helper()
	for i := range 7 {
		for _, added := range w.nodes[2:] {
			n := framework.Node(added.Name)
			cluster.Change(t, n, func() { n.Spec.Unschedulable = i%2 == 0 })
		}
	}
}

// recreate deletes the pool and creates it again under the same name.
func recreate(t *testing.T, w *world) {
	t.Helper()
	pool := framework.Pool(w.name)
	cluster.Refresh(t, pool)
	again := framework.Pool(w.name)
	again.Spec = pool.Spec
	cluster.Delete(t, pool)
	framework.Eventually(t, "the pool is gone", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(pool), framework.Pool(w.name)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	cluster.Apply(t, again)
}

// drop deletes the nodes that [enlarge] has added.
func drop(t *testing.T, w *world) {
	t.Helper()
	for _, n := range w.nodes[2:] {
		cluster.Delete(t, framework.Node(n.Name))
	}
}

func remove(t *testing.T, w *world) {
	t.Helper()
	pool := framework.Pool(w.name)
	cluster.Change(t, pool, func() { pool.Spec.Headroom = nil })
}

// testHeadroomFollowsEdits checks that the final condition matches the final spec, regardless of
// the edits in between.
func testHeadroomFollowsEdits(t *testing.T, manager *framework.Manager) {
	edits := []edit{
		{"storm", flip(&tidekeeperv1.Headroom{Nodes: 1}), remove, "NoPlace", ""},
		{"storm-none", flip(nil), flip(&tidekeeperv1.Headroom{Zones: 1}), "", "NoPlace"},
		{"zoneless", func(t *testing.T, w *world) { flip(&tidekeeperv1.Headroom{Zones: 1})(t, w); zoned("", "")(t, w) }, zoned("", "one"), "NoZones", "NoPlace"},
		{"one-zone", func(t *testing.T, w *world) { enlarge(t, w); zoned("z", "z", "z", "z", "z", "z")(t, w) }, zoned("a", "b", "c", "d", "e", "f"), "NoPlace", "EnoughRoom"},
		{"both", zoned("", ""), zoned("a", "b"), "NoPlace", "NoPlace"}, // The loss of a node can be evaluated without zones, so it is still reported.
		{"members", selecting("none"), selecting(""), "NoNodes", "NoPlace"},
		{"nodes", enlarge, flap, "EnoughRoom", "NoPlace"},
		{"again", func(t *testing.T, w *world) { enlarge(t, w); recreate(t, w) }, func(t *testing.T, w *world) { recreate(t, w); drop(t, w) }, "EnoughRoom", "NoPlace"},
	}
	worlds := map[string]*world{}
	for _, e := range edits {
		w := twoNodes(t, "edit-"+e.name, 3)
		worlds[e.name] = w
		w.askHeadroom(t, true, true)
	}
	assert := func(e edit, reason string) {
		t.Helper()
		if reason != "" {
			headroomBecomes(t, worlds[e.name].name, reason)
			return
		}
		framework.Eventually(t, e.name+" has no condition Headroom, and no metric", func() error {
			_, has := manager.ReadMetrics(t).Value("tidekeeper_nodepool_headroom", map[string]string{"pool": worlds[e.name].name})
			if c, err := headroom(t, worlds[e.name].name); err == nil || c.Type != "" || has {
				return fmt.Errorf("%+v, %t", c, has)
			}
			return nil
		})
	}
	for _, e := range edits {
		e.first(t, worlds[e.name])
	}
	for _, e := range edits {
		assert(e, e.after)
	}
	for _, e := range edits {
		e.second(t, worlds[e.name])
	}
	for _, e := range edits {
		assert(e, e.then)
	}
	manager.AssertSound(t)
}

// TestHeadroomWrongInput checks that an invalid headroom is rejected with one line that names the
// mistake, and that nothing changes.
func TestHeadroomWrongInput(t *testing.T) {
	w := aSmallWorld(t, "wrong")
	pool := framework.Pool(w.name)
	cluster.Refresh(t, pool)
	for headroom, want := range map[string]string{
		`{}`:                    "headroom needs nodes, zones or both: nodes: 1 asks for a place for the pods of any one node",
		`{"nodes":0}`:           "spec.headroom.nodes in body should be greater than or equal to 1",
		`{"nodes":2}`:           "spec.headroom.nodes in body should be less than or equal to 1",
		`{"nodes":-1}`:          "spec.headroom.nodes in body should be greater than or equal to 1",
		`{"zones":"x"}`:         `.spec.headroom.zones: expected numeric (int or float), got string`,
		`{"nodes":1,"zones":0}`: "spec.headroom.zones in body should be greater than or equal to 1",
		`{"nodes":1.5}`:         "spec.headroom.nodes in body must be of type int",
		`{"nodes":4294967297}`:  "spec.headroom.nodes in body should be less than or equal to 1",
		`{"nodes":1,"racks":1}`: ".spec.headroom.racks: field not declared in schema",
		`[1]`:                   ".spec.headroom: expected map",
	} {
		manifest := "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata: {name: " + w.name + "}\nspec: {headroom: " + headroom + "}\n"
		out, err := cluster.Kubectl(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
		if err == nil || strings.Count(out, want) != 1 {
			t.Errorf("headroom %s: %v\n%s", headroom, err, out)
		}
	}
	before := pool.DeepCopy()
	cluster.Refresh(t, pool)
	if pool.ResourceVersion != before.ResourceVersion {
		t.Errorf("the pool has changed: %+v", pool.Spec)
	}
	explained, err := cluster.Kubectl("", "explain", "nodepool.spec.headroom", "--recursive")
	if err != nil || !strings.Contains(explained, "zones") || !strings.Contains(explained, "nodes") {
		t.Errorf("kubectl explain: %v\n%s", err, explained)
	}
}

// testHeadroomOfDeletedPool checks that deleting a pool does not depend on its headroom, even if a
// finalizer delays the deletion, and that a deleted pool has no headroom metric.
func testHeadroomOfDeletedPool(t *testing.T, manager *framework.Manager) {
	w := twoNodes(t, "deleted", 3)
	w.askHeadroom(t, true, true)
	headroomBecomes(t, w.name, "NoPlace")
	pool := framework.Pool(w.name)
	hold := []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`)
	cluster.Change(t, pool, func() { pool.Finalizers = append(pool.Finalizers, "example.com/hold") })
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(strings.Replace(string(hold), `"example.com/hold"`, "", 1)))
		_ = cluster.Patch(context.WithoutCancel(t.Context()), framework.Pool(w.name), patch)
	})
	cluster.Delete(t, pool)
	framework.Eventually(t, "only another finalizer holds the pool", func() error {
		cluster.Refresh(t, pool)
		if !slices.Equal(pool.Finalizers, []string{"example.com/hold"}) {
			return fmt.Errorf("%v", pool.Finalizers)
		}
		return nil
	})
	w.scale(t, 2)
	cluster.Change(t, pool, func() { pool.Finalizers = nil })
	framework.Eventually(t, "the metrics of the pool are gone", func() error {
		m, err := manager.TryMetrics()
		for _, name := range []string{"tidekeeper_nodepool_headroom", "tidekeeper_nodepool_lost", "tidekeeper_nodepool_largest_fit"} {
			if value, has := m.Value(name, map[string]string{"pool": w.name}); has {
				err = errors.Join(err, fmt.Errorf("%s is %v", name, value))
			}
		}
		return err
	})
	manager.AssertSound(t)
}
