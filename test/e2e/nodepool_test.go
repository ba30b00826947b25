// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestNodePool_Spec checks that the taints, labels, annotations and handler in a pool's spec all
// take effect.
func TestNodePool_Spec(t *testing.T) {
	cluster.StartManager(t)
	addMembers(t, "s01", 1)
	out, err := cluster.Kubectl(`
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata:
  name: s01
spec:
  labels: {example.com/s01: "10"}
  annotations: {example.com/owner: "team one, über alles"}
  taints: [{key: example.com/s01, value: worker, effect: NoSchedule}, {key: example.com/s01, effect: PreferNoSchedule}]
  handler: runc
`, "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Delete(t, framework.Pool("s01")) })
	if want := "nodepool.tidekeeper.dev/s01 created\n"; out != want {
		t.Errorf("kubectl says %q, want %q", out, want)
	}
	eventuallyShape(t, "s01-1", shape{
		Labels:      map[string]string{"example.com/s01": "10"},
		Annotations: map[string]string{"example.com/owner": "team one, über alles"},
		Taints:      []string{"example.com/s01=worker:NoSchedule", "example.com/s01=:PreferNoSchedule"},
		Recorded:    []string{"s01"},
	})
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-s01"}}
	framework.Eventually(t, "the RuntimeClass exists", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		return diff("runc", class.Handler)
	})

	// Settings that are removed from the spec are removed from the nodes, and nothing else is.
	pool := framework.Pool("s01")
	cluster.Change(t, pool, func() {
		pool.Spec.Annotations = nil
		pool.Spec.Taints = pool.Spec.Taints[:1]
		pool.Spec.Labels["example.com/s01"] = "20"
	})
	eventuallyShape(t, "s01-1", shape{
		Labels:   map[string]string{"example.com/s01": "20"},
		Taints:   []string{"example.com/s01=worker:NoSchedule"},
		Recorded: []string{"s01"},
	})
}

// TestNodePool_Members checks that a pool's members are the nodes with its role label or, if it has
// a selector, the nodes that the selector matches.
func TestNodePool_Members(t *testing.T) {
	cluster.StartManager(t)
	members := addMembers(t, "s02", 2)
	cluster.AddNodes(t, "s02other", 1, "--labels", "example.com/zone=z1")
	cluster.Apply(t, pool("s02"))
	selecting := pool("s02zone")
	selecting.Spec.Selector = &tidekeeperv1.NodeSelector{
		MatchLabels:      map[string]tidekeeperv1.LabelValue{"example.com/zone": "z1"},
		MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{{Key: role("s02"), Operator: metav1.LabelSelectorOpDoesNotExist}},
	}
	cluster.Apply(t, selecting)

	for _, name := range members {
		eventuallyShape(t, name, shapeFrom("s02"))
	}
	want := shapeFrom("s02zone")
	want.Labels["example.com/zone"] = "z1"
	eventuallyShape(t, "s02other-1", want)
	healthyWith(t, "s02", 2)
	healthyWith(t, "s02zone", 1)
}

// TestNodePool_RuntimeClass checks that a pool with a handler has a RuntimeClass, and that pods
// with this RuntimeClass run on the pool's nodes.
func TestNodePool_RuntimeClass(t *testing.T) {
	cluster.StartManager(t)
	addMembers(t, "s03", 1)
	cluster.AddNodes(t, "s03other", 1)
	p := pool("s03")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	healthyWith(t, "s03", 1)

	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-s03"}}
	cluster.Refresh(t, class)
	if !metav1.IsControlledBy(class, p) {
		t.Errorf("the RuntimeClass is owned by %v, want the pool", class.OwnerReferences)
	}
	name := class.Name
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "s03", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			RuntimeClassName: &name,
			Containers:       []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
		},
	}
	cluster.Apply(t, pod)
	framework.Eventually(t, "the pod runs on the pool", func() error {
		cluster.Refresh(t, pod)
		return diff("s03-1 Running", pod.Spec.NodeName+" "+string(pod.Status.Phase))
	})

	// The RuntimeClass's scheduling follows the pool's spec. A new handler requires a new
	// RuntimeClass, because the handler is immutable.
	cluster.Change(t, p, func() { p.Spec.Taints[0].Value = "no" })
	framework.Eventually(t, "the toleration follows the taint", func() error {
		cluster.Refresh(t, class)
		return diff([]corev1.Toleration{{Key: "example.com/s03", Operator: corev1.TolerationOpEqual, Value: "no", Effect: corev1.TaintEffectNoSchedule}}, class.Scheduling.Tolerations)
	})
	first := class.UID
	cluster.Change(t, p, func() { p.Spec.Handler = "gvisor" })
	framework.Eventually(t, "the RuntimeClass is replaced", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		if class.UID == first {
			return errors.New("it is the same object")
		}
		return diff("gvisor", class.Handler)
	})
	cluster.Change(t, p, func() { p.Spec.Handler = "" })
	eventuallyGone(t, class)
}

// TestNodePool_RuntimeClassNotOwned checks that another owner's RuntimeClass is reported as a
// conflict, and is not taken over.
func TestNodePool_RuntimeClassNotOwned(t *testing.T) {
	cluster.StartManager(t)
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-s03f"}, Handler: "theirs"}
	cluster.Apply(t, class)
	version := class.ResourceVersion
	p := pool("s03f")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)

	const message = "RuntimeClass node-pool-s03f exists and does not belong to this pool: delete it, or remove handler from the spec"
	got := eventuallyReason(t, "s03f", "RuntimeClassConflict")
	if err := diff(message, got.Status.Conditions[0].Message); err != nil {
		t.Error(err)
	}
	cluster.EventuallyEvent(t, "NodePool", "s03f", "Warning RuntimeClassConflict: "+message)
	cluster.Refresh(t, class)
	if class.ResourceVersion != version {
		t.Errorf("the RuntimeClass was touched: %v", class)
	}

	// Once the other owner's RuntimeClass is deleted, the pool creates its own.
	cluster.Delete(t, class)
	eventuallyReason(t, "s03f", "NoNodes")
	framework.Eventually(t, "the pool's own exists", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		return diff("runc", class.Handler)
	})
}

// TestNodePool_DeletionCleansNodes checks that deleting a pool removes its settings from all nodes,
// even from a node that left the pool while no manager was running. Settings of other clients must
// stay.
func TestNodePool_DeletionCleansNodes(t *testing.T) {
	manager := cluster.StartManager(t)
	addMembers(t, "s04", 3, "--labels", "example.com/theirs=1", "--taints", "example.com/theirs=:NoSchedule")
	// The second node already has one of the pool's labels, set by another client.
	relabel(t, "s04-2", map[string]string{"example.com/s04": "10"})
	p := pool("s04")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	healthyWith(t, "s04", 3)

	manager.Kill(t)
	relabel(t, "s04-3", map[string]string{role("s04"): "-"})
	cluster.Delete(t, p)
	cluster.Refresh(t, p)
	if p.DeletionTimestamp == nil {
		t.Fatal("without a manager the pool is gone at once: it has no finalizer")
	}

	cluster.StartManager(t)
	eventuallyGone(t, p)
	for _, name := range []string{"s04-1", "s04-2", "s04-3"} {
		want := shape{Labels: map[string]string{"example.com/theirs": "1"}, Taints: []string{"example.com/theirs=:NoSchedule"}}
		if name == "s04-2" {
			want.Labels["example.com/s04"] = "10"
		}
		// The pool no longer exists, so the node must already be clean.
		if err := diff(want, shapeOf(t, name)); err != nil {
			t.Errorf("node %s is not clean: %v", name, err)
		}
	}
	eventuallyGone(t, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-s04"}})
}

// TestNodePool_NodesMove checks that changing a node's labels queues both the pool that the node
// has left and the pool that it has joined.
func TestNodePool_NodesMove(t *testing.T) {
	cluster.StartManager(t)
	addMembers(t, "s09a", 2)
	for _, name := range []string{"s09a", "s09b", "s09c"} {
		cluster.Apply(t, pool(name))
	}
	healthyWith(t, "s09a", 2)
	eventuallyReason(t, "s09b", "NoNodes")
	bystander := eventuallyReason(t, "s09c", "NoNodes")

	relabel(t, "s09a-2", map[string]string{role("s09a"): "-", role("s09b"): ""})
	healthyWith(t, "s09a", 1)
	healthyWith(t, "s09b", 1)
	eventuallyShape(t, "s09a-2", shapeFrom("s09b"))
	eventuallyShape(t, "s09a-1", shapeFrom("s09a"))

	version := bystander.ResourceVersion
	cluster.Refresh(t, bystander)
	if bystander.ResourceVersion != version {
		t.Error("an unrelated pool was written")
	}
}

// TestDriftIsPutBack checks that a manual edit of a pool's setting on a node is reverted, with an
// event, and that other clients' settings stay.
func TestDriftIsPutBack(t *testing.T) {
	cluster.StartManager(t)
	addMembers(t, "drift", 1)
	cluster.Apply(t, pool("drift"))
	eventuallyShape(t, "drift-1", shapeFrom("drift"))

	node := framework.Node("drift-1")
	cluster.Change(t, node, func() {
		node.Labels["example.com/drift"] = "99"
		node.Labels["example.com/theirs"] = "1"
		node.Spec.Taints = []corev1.Taint{{Key: "example.com/theirs", Effect: corev1.TaintEffectPreferNoSchedule}}
	})
	want := shapeFrom("drift")
	want.Labels["example.com/theirs"] = "1"
	want.Taints = append([]string{"example.com/theirs=:PreferNoSchedule"}, want.Taints...)
	eventuallyShape(t, "drift-1", want)
	cluster.EventuallyEvent(t, "NodePool", "drift", "Warning DriftCorrected: restored settings that other clients had changed: "+
		"label example.com/drift on node drift-1, taint example.com/drift:NoSchedule on node drift-1")
}

// TestFightIsSlowedDown checks two pools whose labels move a node from one pool to the other and
// back, which no schema can prevent. The manager must slow them down and report it in an event.
func TestFightIsSlowedDown(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "fight", 1, "--labels", "example.com/fight=yes")
	chicken, egg := framework.Pool("fight-chicken"), framework.Pool("fight-egg")
	chicken.Spec.Selector = &tidekeeperv1.NodeSelector{
		MatchLabels:      map[string]tidekeeperv1.LabelValue{"example.com/fight": "yes"},
		MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{{Key: "example.com/egg", Operator: metav1.LabelSelectorOpDoesNotExist}},
	}
	chicken.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/chicken": "1"}
	egg.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"example.com/chicken": "1"}}
	egg.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/egg": "1"}
	audit := cluster.Audit(t, "tidekeeper/")
	writes := 0
	count := func() int {
		for _, r := range audit.Requests(t) {
			if r.Resource == "nodes" && r.Name == "fight-1" && r.Writes() && r.Code < 300 {
				writes++
			}
		}
		return writes
	}
	began := time.Now()
	cluster.Apply(t, chicken)
	cluster.Apply(t, egg)
	cluster.EventuallyEvent(t, "NodePool", "fight-egg", "Warning ConflictingWriter: another client or another pool keeps reverting this pool's changes to node fight-1; updates are throttled")
	count()
	if most := 22 + int(time.Since(began)/(10*time.Second)); writes > most {
		t.Errorf("the node was written %d times, want 20 and one in ten seconds, at most %d", writes, most)
	}

	// A recreated node is not slowed down because of its predecessor.
	node := framework.Node("fight-1")
	cluster.Delete(t, node)
	node = framework.Node("fight-1")
	node.Labels = map[string]string{"example.com/fight": "yes"}
	cluster.Apply(t, node)
	writes = 0
	framework.Eventually(t, "the new node is written as often as the first", func() error {
		if count() < 20 {
			return fmt.Errorf("it was written %d times", writes)
		}
		return nil
	})
}

// TestConflict checks that, if two pools set the same key, the older pool wins. The younger pool
// must report the conflict, and set the key once the older pool is deleted.
func TestConflict(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "conflict", 2, "--labels", role("conflict-b")+"=,"+role("conflict-a")+"=")
	older, younger := framework.Pool("conflict-b"), framework.Pool("conflict-a")
	older.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/team": "older", "example.com/same": "1"}
	younger.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/team": "younger", "example.com/same": "1"}
	cluster.Apply(t, older)
	healthyWith(t, older.Name, 2)
	// Creation times have a resolution of one second, and equal times are decided by name.
	framework.Eventually(t, "a second has passed", func() error {
		probe := pool("conflict-probe")
		if err := cluster.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if !probe.CreationTimestamp.After(older.CreationTimestamp.Time) {
			return errors.New("it has not")
		}
		return nil
	})
	cluster.Apply(t, younger)

	got := eventuallyReason(t, younger.Name, "Conflicted")
	message := "2 nodes, for instance node conflict-1: the older pool conflict-b has label example.com/team; change one of the pools"
	for _, c := range got.Status.Conditions {
		if c.Type == "Conflicted" && (c.Status != metav1.ConditionTrue || c.Message != message) {
			t.Errorf("the condition Conflicted is %s: %q, want True: %q", c.Status, c.Message, message)
		}
	}
	cluster.EventuallyEvent(t, "NodePool", younger.Name, "Warning "+tidekeeperv1.EventKeyConflict+": "+message)
	eventuallyShape(t, "conflict-1", shape{Labels: map[string]string{"example.com/team": "older", "example.com/same": "1"}, Recorded: []string{"conflict-b"}})

	cluster.Delete(t, older)
	healthyWith(t, younger.Name, 2)
	eventuallyShape(t, "conflict-1", shape{Labels: map[string]string{"example.com/team": "younger", "example.com/same": "1"}, Recorded: []string{"conflict-a"}})
}
