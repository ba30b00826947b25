// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestRequestedIsWhatKubectlSays checks, for each kind of pod that the scheduler counts
// differently, that the pool's requested resources are the sum that kubectl describe node prints
// for the pool's nodes, and that pools fit finds room for the rest.
func TestRequestedIsWhatKubectlSays(t *testing.T) {
	cluster.StartManager(t, "--status-interval=1s")
	w := newWorld(t, "requested", rand.New(rand.NewPCG(1, 1)))
	for i := range 2 {
		n := framework.Node(fmt.Sprint("requested-", i))
		n.Labels = map[string]string{worldLabel: w.name, corev1.LabelHostname: n.Name}
		n.Status.Allocatable = list("cpu", "16", "memory", "16Gi", "pods", "100000")
		w.addNode(t, n)
	}
	w.awaitNodes(t)
	cluster.Apply(t, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.name}, Handler: "runc", Overhead: &nodev1.Overhead{PodFixed: list("cpu", "130m", "memory", "70Mi")},
	})
	w.everyKind(t)
	w.awaitPods(t)

	framework.Eventually(t, "the pool's status is what kubectl describe says", func() error {
		var said described
		for _, n := range w.nodes {
			said.add(t, n.Name)
		}
		pool := framework.Pool(w.name)
		cluster.Refresh(t, pool)
		requested := pool.Status.Requested
		if requested.Cpu().Cmp(said.cpu) != 0 || requested.Memory().Cmp(said.memory) != 0 {
			return fmt.Errorf("the pool requests %s CPU and %s of memory, kubectl says %s and %s", requested.Cpu(), requested.Memory(), &said.cpu, &said.memory)
		}
		// These are the CPU requests of the pods that everyKind creates.
		if want := int64(100 + 900 + 300 + 230 + 700 + 800 + 500); said.cpu.MilliValue() != want {
			return fmt.Errorf("kubectl says %s CPU, want %dm", &said.cpu, want)
		}
		// In its totals, kubectl counts a pod that is being resized to less as already resized,
		// unlike in its list of pods, and unlike the scheduler.
		said.totalCPU.Add(resource.MustParse("300m"))
		if requested.Cpu().Cmp(said.totalCPU) != 0 || requested.Memory().Cmp(said.totalMemory) != 0 {
			return fmt.Errorf("the pool requests %s CPU and %s of memory, the totals are %s and %s", requested.Cpu(), requested.Memory(), &said.totalCPU, &said.totalMemory)
		}
		all := int64(len(w.nodes)) * 16000
		if f := w.fit(t, "", "--cpu", "1m"); f.Copies != all-said.cpu.MilliValue() {
			return fmt.Errorf("pools fit has room for %d copies of 1m, and kubectl says that %d of %dm are requested", f.Copies, said.cpu.MilliValue(), all)
		}
		return nil
	})
}

// everyKind creates one pod for each case that the scheduler counts differently.
func (w *world) everyKind(t *testing.T) {
	t.Helper()
	create := func(name string, change func(*corev1.PodSpec)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.name}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{worldLabel: w.name}, Containers: []corev1.Container{container("app", list("cpu", "100m", "memory", "64Mi"))},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		}}
		change(&pod.Spec)
		if err := cluster.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		w.pods++
		framework.Eventually(t, name+" runs", func() error {
			cluster.Refresh(t, pod)
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return nil
		})
		return pod
	}
	create("plain", func(*corev1.PodSpec) {})
	create("init", func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{container("large", list("cpu", "900m")), container("small", list("cpu", "200m"))}
	})
	create("sidecar", func(s *corev1.PodSpec) {
		sidecar := container("sidecar", list("cpu", "200m", "memory", "10Mi"))
		sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		s.InitContainers = []corev1.Container{sidecar}
	})
	create("overhead", func(s *corev1.PodSpec) { s.RuntimeClassName = new(w.name) })
	create("pod-level", func(s *corev1.PodSpec) {
		s.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "700m", "memory", "300Mi")}
	})
	ended := create("ended", func(*corev1.PodSpec) {})
	cluster.ChangeStatus(t, ended, func() { ended.Status.Phase = corev1.PodSucceeded })

	// resize resizes a pod whose status still reports the old resources.
	resize := func(pod *corev1.Pod, cpu string) {
		had := pod.Spec.Containers[0].Resources.DeepCopy()
		framework.Eventually(t, pod.Name+" is ready", func() error {
			cluster.Refresh(t, pod)
			if len(pod.Status.ContainerStatuses) == 0 || !pod.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("%+v", pod.Status.ContainerStatuses)
			}
			return nil
		})
		cluster.ChangeStatus(t, pod, func() {
			pod.Status.ContainerStatuses[0].AllocatedResources, pod.Status.ContainerStatuses[0].Resources = had.Requests, had
		})
		before := pod.DeepCopy()
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		if err := cluster.SubResource("resize").Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	resize(create("grows", func(*corev1.PodSpec) {}), "800m")
	resize(create("shrinks", func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("500m")
	}), "200m")
}

// described holds the requests that kubectl describe node prints: the sum over its list of pods,
// and its totals, "Allocated resources".
type described struct{ cpu, memory, totalCPU, totalMemory resource.Quantity }

// add adds the requests in the output of kubectl describe for a node.
func (d *described) add(t *testing.T, node string) {
	t.Helper()
	out, err := cluster.Kubectl("", "describe", "node", node)
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(out, "\nNon-terminated Pods:")
	pods, totals, found := strings.Cut(tables, "\nAllocated resources:\n")
	if !found {
		t.Fatalf("kubectl describe node prints\n%s", out)
	}
	add := func(to *resource.Quantity, text string) {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		to.Add(q)
	}
	for line := range strings.Lines(pods) {
		// The columns are Namespace, Name, CPU Requests, CPU Limits, Memory Requests and so on,
		// with percentages.
		if f := strings.Fields(line); len(f) > 6 && strings.HasSuffix(f[3], "%)") {
			add(&d.cpu, f[2])
			add(&d.memory, f[6])
		}
	}
	for line := range strings.Lines(totals) {
		switch f := strings.Fields(line); {
		case len(f) > 1 && f[0] == "cpu":
			add(&d.totalCPU, f[1])
		case len(f) > 1 && f[0] == "memory":
			add(&d.totalMemory, f[1])
		}
	}
}
