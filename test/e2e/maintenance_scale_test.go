// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// crowdSize returns the number of pods of the hostile tenant: the environment variable CROWD, or 150,
// which takes a tenth of the time of 5,000.
func crowdSize(t *testing.T) int32 {
	t.Helper()
	size, err := strconv.ParseInt(cmp.Or(os.Getenv("CROWD"), "150"), 10, 32)
	if err != nil {
		t.Fatalf("CROWD: %v", err)
	}
	return int32(size)
}

// TestMaintenance_HostileTenant checks that a tenant whose pods cannot leave a node, or do not end, and
// in whose namespace no restart can be requested, delays this node only: the other pods of the node
// leave it, other nodes are maintained, and the requests of the manager stay bounded.
func TestMaintenance_HostileTenant(t *testing.T) {
	cluster.StartManager(t, maintaining)
	const size = "--allocatable=cpu=640,memory=2560Gi,pods=6000"
	names := addMembers(t, "hostile", 1, size)
	tenant := "a-hostile-tenant" // Its pods come before those of the namespace default.
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}})
	cluster.Apply(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "no-restarts"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/scheduledrestarts.tidekeeper.dev": resource.MustParse("0")}},
	})
	crowd, endless, single, neighbor := onPool("crowd", "hostile", crowdSize(t)), onPool("endless", "hostile", 1), onPool("unrequested", "hostile", 1), onPool("neighbor", "hostile", 1)
	crowd.Spec.Strategy.Type, endless.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType
	endless.Spec.Template.Finalizers = []string{"example.com/never"}
	for _, d := range []*appsv1.Deployment{crowd, endless, single} {
		d.Namespace = tenant
		cluster.Apply(t, d)
	}
	cluster.Apply(t, minAvailableOf(crowd, intstr.FromString("100%")))
	cluster.Apply(t, neighbor)
	t.Cleanup(func() { removePodFinalizers(t, tenant) })
	for _, d := range []*appsv1.Deployment{crowd, endless, single, neighbor} {
		eventuallyReady(t, d)
	}
	cluster.AddNodes(t, "hostile-other", 2, "--pool", "hostile", size) // No pod was placed on these nodes.
	names = append(names, "hostile-other-1", "hostile-other-2")

	ready := cluster.WatchReady(t, map[string]int{neighbor.Name: 1})
	audit := cluster.Audit(t, "tidekeeper/")
	two := intstr.FromInt32(2)
	m := maintenanceOf("hostile", tidekeeperv1.UntilDrained)
	m.Spec.MaxUnavailable, m.Spec.RequirePlace = &two, new(bool)
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "has maintained the other nodes", func(m *tidekeeperv1.NodeMaintenance) error {
		p := m.Status.Nodes[names[0]]
		if p.Reason != "Budget" || !strings.Contains(p.Message, tenant+"/crowd") {
			return fmt.Errorf("%+v", p)
		}
		return errors.Join(inPhase(names[0], tidekeeperv1.NodeDraining)(m), inPhase(names[1], tidekeeperv1.NodeDone)(m), inPhase(names[2], tidekeeperv1.NodeDone)(m))
	})
	framework.Eventually(t, "the neighbor has left", func() error {
		list := &corev1.PodList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(neighbor.Namespace), client.MatchingLabels(neighbor.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		for _, pod := range list.Items {
			if pod.Spec.NodeName == names[0] {
				return fmt.Errorf("pod %s is on %s", pod.Name, names[0])
			}
		}
		return nil
	})
	for _, problem := range ready() {
		t.Error(problem)
	}

	// Each list of the pods of the node comes with a bounded number of other requests.
	const looks, most = 4, 60
	audit.Requests(t)
	seen, sent := 0, 0
	framework.Eventually(t, "the pods of the node have been listed again", func() error {
		for _, r := range audit.Requests(t) {
			if sent++; r.Verb == "list" && r.Resource == "pods" && strings.Contains(r.URI, "spec.nodeName%3D"+names[0]) {
				seen++
			}
		}
		if seen < looks {
			return fmt.Errorf("%d times", seen)
		}
		return nil
	})
	if sent > (seen+1)*most {
		t.Errorf("%d requests for %d lists of the pods, want at most %d for each", sent, seen, most)
	}
	cluster.Delete(t, m)
	withoutTrace(t, names)
}

// removePodFinalizers removes the finalizers of all pods in a namespace.
func removePodFinalizers(t *testing.T, namespace string) {
	t.Helper()
	framework.Eventually(t, "no pod of "+namespace+" has a finalizer", func() error {
		ctx, list := context.WithoutCancel(t.Context()), &corev1.PodList{}
		if err := cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if len(pod.Finalizers) == 0 {
				continue
			}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if err := cluster.Patch(ctx, pod, patch); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}

// TestMaintenance_ManyNodes checks the cost of the maintenance of a large pool: no list of all nodes or
// pods, and a small number of requests for each node.
func TestMaintenance_ManyNodes(t *testing.T) {
	cluster.StartManager(t, maintaining)
	const nodes = 300 // The counts for each node are the same with 1,000.
	addMembers(t, "many", nodes)
	audit := cluster.Audit(t, "tidekeeper/")
	m := maintenanceOf("many", tidekeeperv1.UntilDrained)
	tenth := intstr.FromString("10%")
	m.Spec.MaxUnavailable = &tenth
	start := time.Now()
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "is complete", isComplete)
	// A node is looked at every five seconds while it is emptied, and a tenth of the nodes at a time.
	repeated := int(time.Since(start)/(5*time.Second)) * nodes / 10
	if m.Status.Done != nodes {
		t.Errorf("%d nodes are done, want %d", m.Status.Done, nodes)
	}
	count := map[string]int{}
	for _, r := range audit.Requests(t) {
		switch {
		case r.Resource == "events":
			count["events"]++
		case r.Resource == "nodemaintenances" && r.Writes():
			count["writes of the NodeMaintenance"]++
		case r.Writes():
			count["writes of nodes"]++
		case r.Verb == "list" && r.Resource == "pods" && strings.Contains(r.URI, "fieldSelector=spec.nodeName"):
			count["lists of the pods of a node"]++
		case r.Verb == "list" && (r.Resource == "nodes" || r.Resource == "pods"):
			t.Errorf("all objects are listed: %s", r.URI)
		case r.Verb == "get" && r.Resource == "nodes":
			count["reads of a node"]++
		}
	}
	t.Log(count)
	for what, most := range map[string]int{"events": 6, "writes of the NodeMaintenance": 1, "writes of nodes": 3, "lists of the pods of a node": 3, "reads of a node": 5} {
		if strings.HasPrefix(what, "lists") || strings.HasPrefix(what, "reads") {
			count[what] -= repeated
		}
		if count[what] > most*nodes {
			t.Errorf("%d %s for %d nodes, not counting %d further looks; want at most %d for each", count[what], what, nodes, repeated, most)
		}
	}
	cluster.Delete(t, m)
}
