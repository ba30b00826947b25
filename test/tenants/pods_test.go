// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// bound returns a pod that is assigned to a node without the scheduler. It has limits for the given
// number of resources that no node offers.
func bound(name, node string, resources int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: evil[0]}, Spec: *framework.App.DeepCopy()}
	pod.Spec.NodeName = node
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	limits := corev1.ResourceList{}
	for i := range resources {
		limits[corev1.ResourceName(fmt.Sprintf("%s.example.com/r%05d", name, i))] = resource.MustParse("1")
	}
	pod.Spec.Containers[0].Resources.Limits = limits
	return pod
}

// resourceSeries returns the number of series of the metric that has one series per pool and
// resource.
func (s *stage) resourceSeries(t *testing.T) int {
	t.Helper()
	return len(s.manager.ReadMetrics(t)["tidekeeper_nodepool_resource"].GetMetric())
}

// inventedResources creates pods that request invented resources. The neighbour's pool must not
// show resources that exist only in another tenant's requests, and writes of its status must not be
// rejected.
func (s *stage) inventedResources(t *testing.T) {
	before := s.resourceSeries(t)
	pods := []client.Object{bound("a", quiet+"-1", 4000), bound("b", quiet+"-1", 4000), bound("c", quiet+"-2", 4000), bound("d", quiet+"-3", 4000)}
	s.makes(t, pods...)
	// Once the status includes this last pod's CPU, the manager has seen all pods.
	last := bound("e", quiet+"-3", 0)
	last.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("123m")}
	s.makes(t, last)
	framework.Eventually(t, "the pool's status includes the last pod", func() error {
		cluster.Refresh(t, s.pool)
		if cpu := s.pool.Status.Requested.Cpu(); cpu.MilliValue()%1000 != 123 {
			return fmt.Errorf("%s cores are requested", cpu)
		}
		return nil
	})
	for name := range s.pool.Status.Requested {
		if strings.HasSuffix(strings.Split(string(name), "/")[0], ".example.com") {
			t.Errorf("the pool's status has %d resources, for example %s", len(s.pool.Status.Requested), name)
			break
		}
	}
	if after := s.resourceSeries(t); after > before+6 {
		t.Errorf("there are %d series of resources, before there were %d", after, before)
	}
}

// freshNames requests resources with new names all the time, and checks that the manager forgets
// names that are no longer in use.
func (s *stage) freshNames(t *testing.T) {
	before := memory(t, s.manager)
	for round := range 6 {
		pod := bound(fmt.Sprint("fresh-", round), "herd-1", 5000)
		s.makes(t, pod)
		s.removes(t, pod)
	}
	// Each node gets a pod with one of the last resource names.
	var pods []client.Object
	for node := range 100 {
		pods = append(pods, bound(fmt.Sprint("herd-", node+1), fmt.Sprintf("herd-%d", node+1), 1))
	}
	s.makes(t, pods...)
	s.servedByManager(t)
	t.Logf("the manager uses %d MiB, before %d", memory(t, s.manager), before)
}

// longTolerations creates pods that tolerate the neighbour's taint for years. They must not delay
// the taint.
func (s *stage) longTolerations(t *testing.T) {
	for i := range quietNodes {
		pod := bound(fmt.Sprint("stays-", i), fmt.Sprintf("%s-%d", quiet, i+1), 0)
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(315360000))}}
		s.makes(t, pod)
	}
	s.taintQuiet(t)
}

// stuckPods creates pods with a finalizer that is never removed. They must not delay the
// neighbour's taint either.
func (s *stage) stuckPods(t *testing.T) {
	for i := range quietNodes {
		pod := bound(fmt.Sprint("hangs-", i), fmt.Sprintf("%s-%d", quiet, i+1), 0)
		pod.Spec.Tolerations = nil
		pod.Finalizers = []string{"example.com/never"}
		s.makes(t, pod)
		if err := s.mallory.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	s.taintQuiet(t)
}

// taintQuiet checks that a taint of the neighbour's pool is added to its nodes.
func (s *stage) taintQuiet(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	taint := tidekeeperv1.Taint{Key: "example.com/quiet", Effect: corev1.TaintEffectNoExecute}
	cluster.Change(t, s.pool, func() { s.pool.Spec.Taints = []tidekeeperv1.Taint{taint} })
	defer cluster.Change(t, s.pool, func() { s.pool.Spec.Taints = nil })
	framework.EventuallyWithin(t, patience, "each node of the neighbour has its taint", func() error {
		nodes := &corev1.NodeList{}
		if err := cluster.List(t.Context(), nodes, client.HasLabels{"node-role.kubernetes.io/" + quiet}); err != nil {
			return err
		}
		tainted := 0
		for _, node := range nodes.Items {
			if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key }) {
				tainted++
			}
		}
		if tainted != quietNodes {
			return fmt.Errorf("%d have it", tainted)
		}
		return nil
	})
}
