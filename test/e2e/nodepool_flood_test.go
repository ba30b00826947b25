// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestInventedResourcesAreNotCounted creates pods that name their node directly and request
// thousands of invented resources, as any user can. The node's pool must neither show these
// resources nor get metrics for them, and must keep reconciling its nodes.
func TestInventedResourcesAreNotCounted(t *testing.T) {
	manager := cluster.StartManager(t, "--status-interval=100ms")
	nodes := addMembers(t, "flood", 1)
	p := pool("flood")
	cluster.Apply(t, p)
	healthyWith(t, "flood", 1)
	series := func() int { return len(manager.ReadMetrics(t)["tidekeeper_nodepool_resource"].GetMetric()) }
	before := series()

	const invented = 1_000
	for i := range 4 {
		limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		for n := range invented {
			limits[corev1.ResourceName(fmt.Sprintf("flood-%d.io/r%04d", i, n))] = resource.MustParse("1")
		}
		cluster.Apply(t, podOn(nodes[0], fmt.Sprintf("flood-%d", i), limits))
	}
	// The manager keeps only 64 resources per pod, so a pod with few resources requests the
	// resource that a node will offer later.
	gpu := corev1.ResourceName("flood.io/gpu")
	cluster.Apply(t, podOn(nodes[0], "flood-few", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), gpu: resource.MustParse("1")}))
	eventuallyPool(t, "flood", "counts the pods", func(p *tidekeeperv1.NodePool) error {
		return diff("500m", p.Status.Requested.Cpu().String())
	})
	cluster.Change(t, p, func() { p.Spec.Labels["example.com/flood-more"] = "1" })
	want := shapeFrom("flood")
	want.Labels["example.com/flood-more"] = "1"
	eventuallyShape(t, nodes[0], want)
	p = healthyWith(t, "flood", 1)
	if len(p.Status.Requested) > len(p.Status.Allocatable) {
		t.Errorf("the status has %d resources, but the nodes offer %d", len(p.Status.Requested), len(p.Status.Allocatable))
	}
	if after := series(); after > before+len(p.Status.Requested) {
		t.Errorf("the pool had %d series of resources, and has %d", before, after)
	}

	// A resource counts as soon as a node offers it, even for existing pods, until the node stops
	// offering it.
	offer(t, nodes[0], gpu, "4")
	eventuallyPool(t, "flood", "counts what is offered now", func(p *tidekeeperv1.NodePool) error {
		got := p.Status.Requested[gpu]
		return errors.Join(diff("1", got.String()), diff(int32(25), p.Status.RequestedPercent[gpu]))
	})
	offer(t, nodes[0], gpu, "")
	eventuallyPool(t, "flood", "counts it no longer", func(p *tidekeeperv1.NodePool) error {
		if got, counted := p.Status.Requested[gpu]; counted {
			return fmt.Errorf("it counts %s", got.String())
		}
		return nil
	})
	manager.AssertSound(t)
}

// TestANodeOffersABoundedNumberOfResources lets a kubelet report an excessive number of resources
// for its own node.
func TestANodeOffersABoundedNumberOfResources(t *testing.T) {
	cluster.StartManager(t, "--status-interval=100ms")
	nodes := addMembers(t, "offer", 2)
	cluster.Apply(t, pool("offer"))
	healthyWith(t, "offer", 2)
	device := corev1.ResourceName("example.com/device")
	offer(t, nodes[1], device, "3")
	node := framework.Node(nodes[0])
	cluster.Refresh(t, node)
	before := node.DeepCopy()
	for i := range 5_000 {
		node.Status.Capacity[corev1.ResourceName(fmt.Sprintf("a.io/r%05d", i))] = resource.MustParse("1")
	}
	node.Status.Allocatable = node.Status.Capacity
	if err := cluster.Status().Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventuallyPool(t, "offer", "shows some of it, and what others offer", func(p *tidekeeperv1.NodePool) error {
		if n := len(p.Status.Allocatable); n < 50 || n > 128 {
			return fmt.Errorf("it shows %d resources", n)
		}
		got, cpu := p.Status.Allocatable[device], node.Status.Capacity.Cpu()
		return errors.Join(diff("3", got.String()), diff(2*cpu.MilliValue(), p.Status.Allocatable.Cpu().MilliValue()))
	})
}

// podOn returns a pod whose spec names its node.
func podOn(node, name string, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "app", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Limits: limits},
		}}},
	}
}

// offer sets a node's capacity for a resource. The amount "" removes the resource.
func offer(t *testing.T, name string, device corev1.ResourceName, amount string) {
	t.Helper()
	value := "null"
	if amount != "" {
		value = fmt.Sprintf("%q", amount)
	}
	patch := fmt.Sprintf(`{"status":{"capacity":{%q:%s},"allocatable":{%q:%s}}}`, device, value, device, value)
	if err := cluster.Status().Patch(t.Context(), framework.Node(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
