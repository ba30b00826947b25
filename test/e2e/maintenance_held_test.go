// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestMaintenance_HeldBack checks that no drain begins while a NodeMaintenance is suspended or no window
// is open; that a Freeze holds back a drain that has begun, without using up its time; and that the
// drain goes on after the Freeze, although the window has closed, while no other drain begins.
func TestMaintenance_HeldBack(t *testing.T) {
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	clock := framework.NewStandingClock(t, noon)
	cluster.WithClocks(t).StartManager(t, maintaining, clock.Flag())
	audit := cluster.Audit(t, "tidekeeper/")
	names := addMembers(t, "held", 2)
	d := recreated(t, "held")
	budget := minAvailableOf(d, intstr.FromInt32(1))
	cluster.Apply(t, budget)
	on := nodeOf(t, d)
	m := maintenanceOf("held", "")
	m.Spec.Nodes = tidekeeperv1.MaintenanceNodes{Names: names}
	m.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 22 * * *", DurationSeconds: 3600}}
	m.Spec.DrainTimeoutSeconds = 600
	m.Spec.Suspend = true
	cluster.Apply(t, m)
	waits := func(reason, message string) {
		t.Helper()
		eventuallyMaintained(t, m, "waits: "+reason, func(m *tidekeeperv1.NodeMaintenance) error {
			if !strings.Contains(fmt.Sprint(m.Status.Conditions), message) {
				return fmt.Errorf("%+v", m.Status.Conditions)
			}
			return errors.Join(framework.ReadyIs(m.Status.Conditions, m.Generation, reason), diff(0, len(m.Status.Nodes)))
		})
	}
	waits(tidekeeperv1.ReasonSuspended, "no drain begins")
	cluster.Change(t, m, func() { m.Spec.Suspend = false })
	waits(tidekeeperv1.ReasonWindowClosed, "opens at "+noon.Add(10*time.Hour).Format(time.RFC3339))
	withoutTrace(t, names)

	// The nodes are drained in the order of their names, one at a time. The pod may be on either.
	clock.Set(t, noon.Add(10*time.Hour))
	if on == names[1] {
		handBack(t, m, names[0])
	}
	reasonOf := func(reason string) {
		t.Helper()
		eventuallyMaintained(t, m, "drains "+on+": "+reason, func(m *tidekeeperv1.NodeMaintenance) error {
			return errors.Join(inPhase(on, tidekeeperv1.NodeDraining)(m), diff(reason, m.Status.Nodes[on].Reason))
		})
	}
	reasonOf("Budget")
	f := freeze("held")
	f.Spec.Until = metav1.Time{Time: noon.Add(20 * time.Hour)}
	cluster.Apply(t, f)
	reasonOf(tidekeeperv1.ReasonFrozen)
	awaitLooks(t, audit, on, 0) // Reads the log up to here.
	cluster.Delete(t, budget)
	awaitLooks(t, audit, on, 3)
	clock.Set(t, noon.Add(13*time.Hour))
	cluster.Delete(t, f)
	handBack(t, m, on)
	if on == names[0] {
		eventuallyMaintained(t, m, "waits for the next window", func(m *tidekeeperv1.NodeMaintenance) error {
			return errors.Join(framework.ReadyIs(m.Status.Conditions, m.Generation, tidekeeperv1.ReasonWindowClosed), diff(1, len(m.Status.Nodes)))
		})
		clock.Set(t, noon.Add(34*time.Hour))
		handBack(t, m, names[1])
	}
	eventuallyMaintained(t, m, "is complete", isComplete)
	withoutTrace(t, names)
}

// handBack waits until a node is drained, and ends its maintenance.
func handBack(t *testing.T, m *tidekeeperv1.NodeMaintenance, name string) {
	t.Helper()
	eventuallyMaintained(t, m, "has drained "+name, func(m *tidekeeperv1.NodeMaintenance) error {
		if !m.Status.Nodes[name].Marked {
			return fmt.Errorf("%+v", m.Status.Nodes[name])
		}
		return nil
	})
	node := framework.Node(name)
	cluster.Refresh(t, node)
	cluster.Change(t, node, func() { delete(node.Annotations, tidekeeperv1.DrainedForMaintenanceAnnotation) })
	eventuallyMaintained(t, m, "has "+name+" back", inPhase(name, tidekeeperv1.NodeDone))
}

// TestMaintenance_StaleNodes checks that no pod is evicted from a node that was uncordoned by hand, while
// the manager's cache still shows it cordoned, and that the node is released.
func TestMaintenance_StaleNodes(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, maintaining, "--kubeconfig", proxy.Kubeconfig)
	audit := cluster.Audit(t, "tidekeeper/")
	on, budget, m := blockedDrain(t, "stale")
	proxy.Freeze(t, "match: {resources: [nodes]}")
	node := framework.Node(on)
	cluster.Refresh(t, node)
	cluster.Change(t, node, func() { node.Spec.Unschedulable = false })
	awaitLooks(t, audit, on, 0) // Reads the log up to here.
	cluster.Delete(t, budget)
	eventuallyMaintained(t, m, "has released "+on, inPhase(on, tidekeeperv1.NodeReleased))
	proxy.Thaw(t)
	for _, r := range audit.Requests(t) {
		if r.Subresource == "eviction" {
			t.Errorf("after the node was uncordoned: %s", r)
		}
	}
	if got := nodeOf(t, onPool("stale", "stale", 1)); got != on {
		t.Errorf("the pod is on %q", got)
	}
	withoutTrace(t, []string{on})
}

// awaitLooks waits until the manager has listed the pods of a node that often since the audit log was
// last read, and checks that it evicts no pod meanwhile.
func awaitLooks(t *testing.T, audit *framework.Audit, node string, times int) {
	t.Helper()
	looks := 0
	framework.Eventually(t, "the pods of "+node+" have been looked at", func() error {
		for _, r := range audit.Requests(t) {
			switch {
			case r.Subresource == "eviction" && times > 0:
				t.Errorf("drains are held back: %s", r)
			case looksAt(r, node):
				looks++
			}
		}
		if looks < times {
			return fmt.Errorf("%d times", looks)
		}
		return nil
	})
}

// TestLostEvents_Maintenance checks that an edit of a NodeMaintenance whose event was lost holds a drain
// back once the manager has listed the NodeMaintenances again.
func TestLostEvents_Maintenance(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, maintaining, "--kubeconfig", proxy.Kubeconfig)
	audit := cluster.Audit(t, "tidekeeper/")
	on, budget, m := blockedDrain(t, "lost-maint")
	proxy.Add(t, "rules: [{name: lost, match: {resources: [nodemaintenances.tidekeeper.dev]}, events: {types: [MODIFIED]}, fault: {kind: DropEvent}}]")
	cluster.Change(t, m, func() { m.Spec.Suspend = true })
	proxy.AwaitFired(t, "lost", 1)
	// The first error ends the watch, and the second one the list by a watch, so that a plain list follows.
	proxy.Add(t, `rules:
- {name: expired, match: {verbs: [watch], resources: [nodemaintenances.tidekeeper.dev]}, count: {times: 1}, fault: {kind: Error, code: 410, reason: Expired}}
- {name: unavailable, match: {verbs: [watch], resources: [nodemaintenances.tidekeeper.dev]}, count: {times: 1}, fault: {kind: Error, code: 503, reason: ServiceUnavailable}}`)
	proxy.Remove(t, "lost")
	proxy.Cut(t, "match: {resources: [nodemaintenances.tidekeeper.dev]}")
	proxy.AwaitFired(t, "expired", 1)
	proxy.AwaitFired(t, "unavailable", 1)
	eventuallyMaintained(t, m, "is held back", func(m *tidekeeperv1.NodeMaintenance) error {
		return errors.Join(inPhase(on, tidekeeperv1.NodeDraining)(m), diff(tidekeeperv1.ReasonSuspended, m.Status.Nodes[on].Reason))
	})
	framework.Eventually(t, "the NodeMaintenances are listed again", func() error {
		if !slices.ContainsFunc(audit.Requests(t), func(r framework.Request) bool { return r.Verb == "list" && r.Resource == "nodemaintenances" }) {
			return errors.New("no list")
		}
		return nil
	})
	awaitEvictions(t, audit, on)
	cluster.Delete(t, budget)
	awaitLooks(t, audit, on, 2)
	cluster.Delete(t, m)
	withoutTrace(t, []string{on})
}

// awaitEvictions waits until the manager has listed the pods of a node twice. It then waits for no
// eviction from the node that it sent before, as it looks at a node only after its requests have ended.
func awaitEvictions(t *testing.T, audit *framework.Audit, node string) {
	t.Helper()
	looks := 0
	framework.Eventually(t, "earlier evictions from "+node+" have ended", func() error {
		for _, r := range audit.Requests(t) {
			if looksAt(r, node) {
				looks++
			}
		}
		if looks < 2 {
			return fmt.Errorf("%d looks", looks)
		}
		return nil
	})
}

// looksAt reports whether a request lists the pods of a node.
func looksAt(r framework.Request, node string) bool {
	return r.Verb == "list" && r.Resource == "pods" && strings.Contains(r.URI, "spec.nodeName%3D"+node)
}

// blockedDrain creates a pool of one node with a pod whose budget allows nothing, and a NodeMaintenance
// that drains the node.
func blockedDrain(t *testing.T, name string) (node string, budget *policyv1.PodDisruptionBudget, m *tidekeeperv1.NodeMaintenance) {
	t.Helper()
	node = addMembers(t, name, 1)[0]
	d := recreated(t, name)
	budget = minAvailableOf(d, intstr.FromInt32(1))
	cluster.Apply(t, budget)
	m = maintenanceOf(name, "")
	m.Spec.RequirePlace = new(bool)
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "drains "+node, func(m *tidekeeperv1.NodeMaintenance) error {
		return errors.Join(inPhase(node, tidekeeperv1.NodeDraining)(m), diff("Budget", m.Status.Nodes[node].Reason))
	})
	return node, budget, m
}

// recreated creates a Deployment of one pod on a pool, which no restart can move without taking it down.
func recreated(t *testing.T, pool string) *appsv1.Deployment {
	t.Helper()
	d := onPool(pool, pool, 1)
	d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	cluster.Apply(t, d)
	eventuallyReady(t, d)
	return d
}

// TestMaintenance_OtherNamespaces checks that a Deployment with one replica does not block a drain if the
// manager restarts nothing in its namespace: its pod is evicted.
func TestMaintenance_OtherNamespaces(t *testing.T) {
	cluster.StartManager(t, maintaining, "--namespaces="+metav1.NamespaceDefault)
	names := addMembers(t, "unserved", 1)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unserved"}}
	cluster.Apply(t, other)
	d := onPool("alone", "unserved", 1)
	d.Namespace = other.Name
	cluster.Apply(t, d)
	eventuallyReady(t, d)
	cluster.AddNodes(t, "unserved-other", 1, "--pool", "unserved")
	audit := cluster.Audit(t, "tidekeeper/")
	m := maintenanceOf("unserved", tidekeeperv1.UntilDrained)
	m.Spec.Nodes = tidekeeperv1.MaintenanceNodes{Names: names}
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "is complete", isComplete)
	evicted := 0
	for _, r := range audit.Requests(t) {
		if r.Resource == "scheduledrestarts" && r.Writes() {
			t.Errorf("%s in the namespace %s", r, r.Namespace)
		}
		if r.Subresource == "eviction" && r.Code < 300 {
			evicted++
		}
	}
	if evicted != 1 {
		t.Errorf("%d evictions, want 1", evicted)
	}
	cluster.Delete(t, m)
	withoutTrace(t, names)
}

// TestMaintenance_NoPlace checks that no drain begins while the other node has no room for the pods of a
// node, and that the drain begins once it has.
func TestMaintenance_NoPlace(t *testing.T) {
	cluster.StartManager(t, maintaining)
	names := addMembers(t, "full", 2, "--allocatable=cpu=1,memory=1Gi,pods=10")
	var pods []*appsv1.Deployment
	for _, name := range []string{"full-a", "full-b"} {
		d := onPool(name, "full", 1)
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m")}
		cluster.Apply(t, d)
		eventuallyReady(t, d)
		pods = append(pods, d)
	}
	m := maintenanceOf("full", "")
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "waits for room", func(m *tidekeeperv1.NodeMaintenance) error {
		return errors.Join(framework.ReadyIs(m.Status.Conditions, m.Generation, tidekeeperv1.ReasonNoPlace), diff(0, len(m.Status.Nodes)))
	})
	withoutTrace(t, names)
	cluster.Change(t, pods[0], func() { pods[0].Spec.Replicas = new(int32(0)) })
	for _, name := range names {
		handBack(t, m, name)
	}
	eventuallyMaintained(t, m, "is complete", isComplete)
}
