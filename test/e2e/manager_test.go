// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"strings"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const namespace = framework.ManagerNamespace

// TestManager_OneWatchPerKind checks that the cache opens a single watch per kind, regardless of
// the number of controllers that read the kind, and that the watch also streams the initial list.
func TestManager_OneWatchPerKind(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	manager := cluster.StartManager(t, "--controllers=*,pod-count")
	open := map[string]int{}
	once := func() error {
		for resource, n := range audit.OpenWatches(t) {
			open[resource] += n
		}
		return diff(map[string]int{
			"nodepools": 1, "nodes": 1, "pods": 1, "runtimeclasses": 1, "replicasets": 1,
			"scheduledrestarts": 1, "deployments": 1, "statefulsets": 1, "daemonsets": 1,
			"customresourcedefinitions": 1, "freezes": 1, "namespaces": 1, "poddisruptionbudgets": 1,
		}, open)
	}
	framework.Eventually(t, "every kind is watched once", once)

	// Create work for each controller.
	cluster.AddNodes(t, "s23-work", 1)
	addMembers(t, "s23", 1)
	p := pool("s23")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	healthyWith(t, "s23", 1)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		name := "s23-" + strings.ToLower(kind)
		workload(t, kind, name)
		r := restartOf(kind, name)
		cluster.Apply(t, r)
		eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSucceeded, "")
	}
	d := workload(t, "Deployment", "s23")
	cluster.Change(t, d, func() { d.SetAnnotations(map[string]string{tidekeeperv1.OptInAnnotation: "true"}) })
	framework.Eventually(t, "the Deployment has its ScheduledRestart", func() error {
		return cluster.Get(t.Context(), client.ObjectKeyFromObject(d), &tidekeeperv1.ScheduledRestart{})
	})
	rs := replicaSet("s23-set", 1)
	cluster.Apply(t, rs)
	eventuallyCounted(t, rs, "1")
	manager.AssertIdle(t)
	framework.Eventually(t, "after the work, every kind is still watched once", once)
}

// TestManager_ReadsComeFromTheCache checks that the manager's client reads from the cache and
// writes to the API server. From a pool's creation to its deletion, the only reads from the API
// server are the final check before the finalizer is removed.
func TestManager_ReadsComeFromTheCache(t *testing.T) {
	manager := cluster.StartManager(t)
	audit := cluster.Audit(t, "tidekeeper/")
	members := addMembers(t, "s24", 3)
	cluster.Apply(t, pool("s24"))
	healthyWith(t, "s24", 3)
	cluster.EventuallyEvent(t, "NodePool", "s24", "Normal SettingsApplied: updated 3 nodes (s24-1, s24-2, s24-3) to match the pool's spec")
	relabel(t, "s24-2", map[string]string{"example.com/s24": "by-hand"})
	eventuallyShape(t, "s24-2", shapeFrom("s24"))
	manager.Stop(t)

	patched := map[string]int{}
	for _, r := range audit.Requests(t) {
		if !r.Writes() {
			t.Errorf("read from the API server: %s", r)
		}
		// The first patch of a new node may conflict with the removal of its not-ready taint, which the
		// manager's watch may report later than the pool.
		if r.Resource == "nodes" && r.Code < 300 {
			patched[r.Name]++
		}
	}
	// Each node was patched once, except that the manually changed node was patched twice.
	if err := diff(map[string]int{members[0]: 1, members[1]: 2, members[2]: 1}, patched); err != nil {
		t.Errorf("writes per node %v", err)
	}
}

// TestManager_Finalizer checks that the finalizer keeps a deleted pool until the pool's settings
// are removed from its nodes.
func TestManager_Finalizer(t *testing.T) {
	manager := cluster.StartManager(t)
	addMembers(t, "s26", 1)
	p := pool("s26")
	cluster.Apply(t, p)
	healthyWith(t, "s26", 1)
	cluster.Refresh(t, p)
	if err := diff([]string{"tidekeeper.dev/node-pool"}, p.Finalizers); err != nil {
		t.Errorf("finalizers %v", err)
	}
	manager.Kill(t)
	cluster.Delete(t, p)
	eventuallyShape(t, "s26-1", shapeFrom("s26"))
	cluster.Refresh(t, p)
	cluster.StartManager(t)
	eventuallyGone(t, p)
	if err := diff(clean, shapeOf(t, "s26-1")); err != nil {
		t.Errorf("the pool is gone, but its node is not clean: %v", err)
	}
}

// TestManager_OwnerReference checks that the pool owns its RuntimeClass. A change or deletion of
// the RuntimeClass must queue the pool, which restores it. When the pool is deleted, the garbage
// collector must delete the RuntimeClass.
func TestManager_OwnerReference(t *testing.T) {
	cluster.StartManager(t)
	p := pool("s27")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-s27"}}
	there := func() error {
		uid := class.UID
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		if class.UID == uid {
			return errors.New("it is the same object as before")
		}
		return nil
	}
	framework.Eventually(t, "the RuntimeClass exists", there)
	made := class.DeepCopy()
	cluster.Change(t, class, func() {
		class.Scheduling.NodeSelector = map[string]string{"example.com/by-hand": ""}
		class.Scheduling.Tolerations = nil
	})
	framework.Eventually(t, "the RuntimeClass leads to the pool again", func() error {
		cluster.Refresh(t, class)
		return errors.Join(diff(made.Scheduling, class.Scheduling), diff(made.UID, class.UID))
	})
	cluster.Delete(t, class.DeepCopy())
	framework.Eventually(t, "the RuntimeClass exists again", there)
	cluster.Delete(t, p)
	eventuallyGone(t, p)
	eventuallyGone(t, class)
}

// TestManager_EveryEventCounts checks that the creation, a change and the deletion of a node all
// queue the node's pool.
func TestManager_EveryEventCounts(t *testing.T) {
	cluster.StartManager(t)
	cluster.Apply(t, pool("s28"))
	eventuallyReason(t, "s28", "NoNodes")
	cluster.AddNodes(t, "s28", 2)
	relabel(t, "s28-1", map[string]string{role("s28"): ""}) // changed
	healthyWith(t, "s28", 1)
	addMembers(t, "s28", 1) // created, as s28-3
	healthyWith(t, "s28", 2)
	cluster.Delete(t, framework.Node("s28-1")) // deleted
	healthyWith(t, "s28", 1)
	cluster.Delete(t, framework.Node("s28-3"))
	eventuallyReason(t, "s28", "NoNodes")
}
