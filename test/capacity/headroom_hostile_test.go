// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// hostile is a tenant's Deployment on the first of two nodes, with the expected reason of its
// pool's condition Headroom.
type hostile struct {
	name string
	// change edits the pod spec, and gives the nodes the resources and labels that the pod needs.
	change func(w *world, spec *corev1.PodSpec)
	// beside lists the requests of the pods without a controller that run on the second node.
	beside []corev1.ResourceList
	reason string
}

// offer adds 9 of each named resource to the world's first node.
func offer(w *world, names ...string) {
	for _, name := range names {
		w.nodes[0].Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse("9")
		w.nodes[0].Status.Capacity[corev1.ResourceName(name)] = resource.MustParse("9")
	}
}

// request makes the pod request one of each named resource.
func request(spec *corev1.PodSpec, names ...string) {
	r := &spec.Containers[0].Resources
	r.Limits = corev1.ResourceList{}
	for _, name := range names {
		r.Requests[corev1.ResourceName(name)], r.Limits[corev1.ResourceName(name)] = resource.MustParse("1"), resource.MustParse("1")
	}
}

// numbered formats the numbers from 0 to count-1 as names.
func numbered(format string, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf(format, i))
	}
	return names
}

func inTerm(key string, values ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}}}
}

var hostiles = []hostile{
	{name: "plain", reason: "EnoughRoom"},
	{name: "late-resource", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		offer(w, numbered("example.com/r%02d", 80)...)
		request(s, "example.com/r79")
	}},
	{name: "late-resources", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		offer(w, numbered("example.com/r%02d", 120)...)
		request(s, numbered("example.com/r%02d", 120)[70:]...)
	}},
	{name: "invented", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		s.NodeName = w.nodes[0].Name
		request(s, numbered("example.com/invented-%03d", 900)...)
	}},
	{name: "tolerant", reason: "EnoughRoom", change: func(_ *world, s *corev1.PodSpec) {
		own := s.Tolerations
		s.Tolerations = nil
		for _, key := range numbered("example.com/t%d", 4000) {
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		s.Tolerations = append(s.Tolerations, own...)
	}},
	{name: "choosy-here", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		s.Affinity = inTerm(corev1.LabelHostname, append(numbered("nowhere-%d", 150), w.nodes[0].Name)...)
	}},
	{name: "choosy-long", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		s.Affinity = inTerm(corev1.LabelHostname, append(numbered("nowhere-%d", 20000), w.name+"-0", w.name+"-1")...)
	}},
	{name: "huge-cpu", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		s.NodeName = w.nodes[0].Name
		s.Containers[0].Resources.Requests = list("cpu", "9E")
	}},
	{name: "huge-containers", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		s.NodeName = w.nodes[0].Name
		for _, name := range numbered("c%d", 7) {
			s.Containers = append(s.Containers, container(name, list("cpu", "9223372036854775807", "memory", "9223372036854775807")))
		}
	}},
	{name: "huge-milli", reason: "NoPlace", change: func(w *world, s *corev1.PodSpec) {
		s.NodeName = w.nodes[0].Name
		for _, name := range numbered("c%d", 2) {
			s.Containers = append(s.Containers, container(name, list("cpu", "9223372036854775", "memory", "4Ei")))
		}
	}},
	{name: "huge-beside", reason: "NoPlace", beside: []corev1.ResourceList{
		list("memory", "9223372036854775807", "cpu", "9E"), list("memory", "9223372036854775807", "cpu", "9E"), list("memory", "1Gi", "cpu", "9E"),
	}},
	{name: "half-beside", reason: "NoPlace", beside: []corev1.ResourceList{
		list("cpu", "4611686018427387"), list("cpu", "4611686018427387"), list("cpu", "4611686018427387"), list("cpu", "4611686018427387"),
	}},
}

// testHeadroomHostileTenants checks that a tenant with absurd pods can neither make a pool's
// headroom appear larger than it is, nor make the pool's status wrong or long.
func testHeadroomHostileTenants(t *testing.T, manager *framework.Manager) {
	memory := manager.ReadMetrics(t).Sum("process_resident_memory_bytes")
	worlds := map[string]*world{}
	for _, h := range hostiles {
		w := newWorld(t, h.name, rand.New(rand.NewPCG(1, 1)))
		worlds[h.name] = w
		w.addPlain(t, h.name+"-0", "")
		w.awaitNodes(t)
		spec := corev1.PodSpec{
			NodeSelector: map[string]string{worldLabel: h.name}, TerminationGracePeriodSeconds: new(int64(0)),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{container("app", list("cpu", "100m"))},
		}
		if h.change != nil {
			h.change(w, &spec)
			n := framework.Node(h.name + "-0")
			cluster.ChangeStatus(t, n, func() {
				n.Status.Allocatable, n.Status.Capacity = w.nodes[0].Status.Allocatable, w.nodes[0].Status.Capacity
			})
		}
		d := framework.Deployment("web", 1, spec)
		d.Namespace = h.name
		cluster.Apply(t, d)
	}
	for _, h := range hostiles {
		w := worlds[h.name]
		w.running(t, 1) // The pod runs on the first node, which is the only node so far.
		w.addPlain(t, h.name+"-1", "")
		for _, requests := range h.beside {
			w.run(t, h.name+"-1", requests)
		}
		w.askHeadroom(t, true, false)
	}
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			headroomBecomes(t, h.name, h.reason)
			framework.Eventually(t, h.name+" has the right status", func() error {
				pool := framework.Pool(h.name)
				cluster.Refresh(t, pool)
				if strings.HasPrefix(h.name, "late") {
					return nil // Only the first 64 resources of these pods count, so the status differs from the sum of the requests.
				}
				return errors.Join(worlds[h.name].room(t).is(pool.Status), short(pool))
			})
		})
	}
	if after := manager.ReadMetrics(t).Sum("process_resident_memory_bytes"); after > memory+100<<20 {
		t.Errorf("the manager had %.0f MiB and has %.0f", memory/(1<<20), after/(1<<20))
	}
	manager.AssertSound(t)
}
