// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const namespace = framework.ManagerNamespace

// The scheme maps our kind to its Go type, the RESTMapper maps it to its resource, and
// discovery finds it by the names that users type.
func TestManager_SchemeAndRESTMapper(t *testing.T) {
	gvk, err := cluster.GroupVersionKindFor(&tidekeeperv1.NodePool{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (schema.GroupVersionKind{Group: "tidekeeper.dev", Version: "v1", Kind: "NodePool"}); gvk != want {
		t.Errorf("the Go type is of kind %v, want %v", gvk, want)
	}
	mapping, err := cluster.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if want := gvk.GroupVersion().WithResource("nodepools"); mapping.Resource != want || mapping.Scope.Name() != "root" {
		t.Errorf("the kind is served as %v, scope %s; want %v, scope root", mapping.Resource, mapping.Scope.Name(), want)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := d.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range resources.APIResources {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	if err := diff([]string{"nodepools", "nodepools/status", "scheduledrestarts", "scheduledrestarts/status"}, names); err != nil {
		t.Errorf("discovery: %v", err)
	}
}

// One manager runs the controllers that a flag selects, and stops them in order.
func TestManager_ChosenControllersStopInOrder(t *testing.T) {
	manager := cluster.StartManager(t, "--controllers=nodepool")
	addMembers(t, "s22", 1)
	cluster.Apply(t, pool("s22"))
	healthyWith(t, "s22", 1)
	manager.Stop(t) // fails the test if the exit code is not 0
	workers, caches := strings.Index(manager.Log(), "All workers finished"), strings.Index(manager.Log(), "Stopping and waiting for caches")
	if workers < 0 || caches < workers {
		t.Errorf("the caches stop before the workers have finished:\n%s", manager.Log())
	}
	for _, flag := range []string{"--controllers=nodepool,nonsense", "--controllers=-nodepool"} {
		if got := framework.Run(t, flag); got.Wait(t) != 1 || !strings.HasPrefix(got.Log(), "Error: --controllers=") || strings.Count(got.Log(), "\n") != 1 {
			t.Errorf("%s: got %q, want one line that begins with Error: --controllers=", flag, got.Log())
		}
	}
}

// The cache watches each kind once, however many controllers read it. The initial list
// is streamed by the watch.
func TestManager_OneWatchPerKind(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.StartManager(t)
	open := map[string]int{}
	once := func() error {
		for resource, n := range audit.OpenWatches(t) {
			open[resource] += n
		}
		return diff(map[string]int{
			"nodepools": 1, "nodes": 1, "pods": 1, "runtimeclasses": 1,
			"scheduledrestarts": 1, "deployments": 1, "statefulsets": 1, "daemonsets": 1,
			"customresourcedefinitions": 1,
		}, open)
	}
	framework.Eventually(t, "every kind is watched once", once)

	// The work of the controllers does not open a second watch either.
	cluster.AddNodes(t, "s23-work", 1)
	addMembers(t, "s23", 1)
	cluster.Apply(t, pool("s23"))
	healthyWith(t, "s23", 1)
	workload(t, "Deployment", "s23")
	r := restartOf("Deployment", "s23")
	cluster.Apply(t, r)
	eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSucceeded, "")
	if err := once(); err != nil {
		t.Errorf("after the work, watches %v", err)
	}
}

// The client reads from the cache and writes to the API server: from a pool's creation
// to its deletion, the only reads from the API server are the finalizer's last check.
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
		if r.Resource == "nodes" {
			patched[r.Name]++
		}
	}
	// One write for each node, and one more for the one that was changed by hand.
	if err := diff(map[string]int{members[0]: 1, members[1]: 2, members[2]: 1}, patched); err != nil {
		t.Errorf("writes per node %v", err)
	}
}

// The pods that a NoExecute taint would evict from a node are read from an index of the
// cache, not from the API server.
func TestManager_PodsByNodeFromAnIndex(t *testing.T) {
	cluster.StartManager(t, "--no-execute-interval=100ms")
	addMembers(t, "s25", 1)
	d := deployment("s25", 2, corev1.PodSpec{
		NodeSelector: map[string]string{role("s25"): ""},
		Containers:   []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	cluster.Apply(t, d)
	eventuallyReady(t, d)

	audit := cluster.Audit(t, "tidekeeper/")
	p := framework.Pool("s25")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/s25", Effect: corev1.TaintEffectNoExecute}}
	cluster.Apply(t, p)
	healthyWith(t, "s25", 1)
	cluster.EventuallyEvent(t, "NodePool", "s25", "Normal EvictingPods: adding a NoExecute taint to node s25-1")
	for _, r := range audit.Requests(t) {
		if r.Resource == "pods" {
			t.Errorf("pods are read from the API server: %s", r)
		}
	}
}

// The finalizer holds a deleted pool until its nodes are clean.
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

// The RuntimeClass is owned by the pool: its deletion re-queues the pool, which creates
// it again, and after the pool's deletion the garbage collector deletes it.
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
	cluster.Delete(t, class.DeepCopy())
	framework.Eventually(t, "the RuntimeClass exists again", there)
	cluster.Delete(t, p)
	eventuallyGone(t, p)
	eventuallyGone(t, class)
}

// Creation, change and deletion of a node all queue its pool.
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
