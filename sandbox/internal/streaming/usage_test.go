// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// podOf returns a pod with the containers "a" and "b". Container "a" requests 200m of CPU and 100Mi
// of memory; container "b" requests nothing.
func podOf(annotations map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: annotations}}
	for _, name := range []string{"a", "b"} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}},
		})
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("100Mi"),
	}
	return pod
}

func TestUsageOf(t *testing.T) {
	const mi = 1 << 20
	ended := podOf(nil)
	ended.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want []usage
		says string
	}{
		"half of what is requested":      {pod: podOf(nil), want: []usage{{0.1, 50 * mi}, {0.001, 10 * mi}}},
		"what runs only":                 {pod: ended, want: []usage{{0.001, 10 * mi}}},
		"by annotation, shared":          {pod: podOf(map[string]string{CPUUsageAnnotation: "3", MemoryUsageAnnotation: "1Gi"}), want: []usage{{1.5, 512 * mi}, {1.5, 512 * mi}}},
		"one of them by annotation":      {pod: podOf(map[string]string{CPUUsageAnnotation: "10m"}), want: []usage{{0.005, 50 * mi}, {0.005, 10 * mi}}},
		"an annotation that is not one":  {pod: podOf(map[string]string{CPUUsageAnnotation: "much"}), says: `pod shop/web: annotation sandbox.tidekeeper.dev/cpu-usage: "much" is not a quantity`},
		"an annotation that is negative": {pod: podOf(map[string]string{MemoryUsageAnnotation: "-1Mi"}), says: `memory-usage: "-1Mi" is not a quantity`},
	} {
		got, err := usageOf(tc.pod)
		if tc.says != "" {
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: error %v, want %q", name, err, tc.says)
			}
			continue
		}
		if err != nil || len(got) != len(tc.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
			continue
		}
		for i, want := range tc.want {
			if got[i].usage != want || !got[i].started.Equal(noon) {
				t.Errorf("%s: %+v, want %+v", name, got[i], want)
			}
		}
	}
}

// TestMeter checks that a container's CPU time grows at the current usage, and never decreases
// while the container runs.
func TestMeter(t *testing.T) {
	m := &meter{}
	key := containerKey{"uid", "a", noon.Unix()}
	look := func(after time.Duration, cpu, wantContainer, wantNode float64) {
		t.Helper()
		running := map[containerKey]containerUsage{}
		if cpu > 0 {
			running[key] = containerUsage{usage: usage{cpu, 1}, name: "a", started: noon}
		}
		node, containers := m.read(noon.Add(after), noon.Add(-time.Minute), running)
		if near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }; !near(containers[key].seconds, wantContainer) || !near(node.seconds, wantNode) {
			t.Errorf("after %s: %v of the container and %v of the node, want %v and %v", after, containers[key].seconds, node.seconds, wantContainer, wantNode)
		}
	}
	look(10*time.Second, 0.5, 5, 5+7)
	look(20*time.Second, 0.5, 10, 10+8)
	look(30*time.Second, 2, 30, 30+9)
	look(40*time.Second, 0.5, 35, 35+10)
	look(35*time.Second, 0.5, 35, 35+10) // After the clock is set back, the CPU time must not decrease.
	look(60*time.Second, 0, 0, 35+12.5)
}
