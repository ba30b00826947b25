// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestEvicting(t *testing.T) {
	pool := objects.Pool("worker").Taint("a", "1", objects.NoSchedule).Taint("b", "2", objects.NoExecute).Taint("c", "3", objects.PreferNoSchedule).Taint("b", "4", objects.NoSchedule)
	want := []corev1.Taint{{Key: "b", Value: "2", Effect: objects.NoExecute}}
	if diff := cmp.Diff(want, plan.NoExecuteTaints(pool.Obj())); diff != "" {
		t.Errorf("evicting (-want +got):\n%s", diff)
	}
	if got := plan.NoExecuteTaints(objects.Pool("worker").Taint("a", "1", objects.NoSchedule).Obj()); got != nil {
		t.Errorf("a pool without NoExecute taints has %v", got)
	}
}

// TestIsVictim checks which pods a taint evicts, and when, against the rules of Kubernetes' taint
// eviction controller (its functions GetMatchingTolerations and getMinTolerationTime).
func TestIsVictim(t *testing.T) {
	seconds := func(n int64, t corev1.Toleration) corev1.Toleration {
		t.TolerationSeconds = &n
		return t
	}
	gpu := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "1", Effect: objects.NoExecute}
	gpuExists := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	one := []corev1.Taint{{Key: "gpu", Value: "1", Effect: objects.NoExecute}}
	two := append(slices.Clone(one), corev1.Taint{Key: "fpga", Effect: objects.NoExecute})

	for _, tc := range []struct {
		name   string
		pod    *objects.PodBuilder
		taints []corev1.Taint
		want   bool
	}{
		{"a pod without tolerations is evicted", objects.Pod("p"), one, true},
		{"without taints, no pod is evicted", objects.Pod("p"), nil, false},
		{"a pod that tolerates the taint stays", objects.Pod("p").Tolerating(gpu), one, false},
		{"an empty operator is Equal", objects.Pod("p").Tolerating(corev1.Toleration{Key: "gpu", Value: "1"}), one, false},
		{"a pod that tolerates any value stays", objects.Pod("p").Tolerating(gpuExists), one, false},
		{"a pod that tolerates everything stays", objects.Pod("p").Tolerating(everything), two, false},
		{"another value is not tolerated", objects.Pod("p").Tolerating(corev1.Toleration{Key: "gpu", Value: "2"}), one, true},
		{"another effect is not tolerated", objects.Pod("p").Tolerating(corev1.Toleration{Key: "gpu", Value: "1", Effect: objects.NoSchedule}), one, true},
		{"a pod that tolerates it for some time is evicted afterwards", objects.Pod("p").Tolerating(seconds(3600, gpu)), one, true},
		{"a pod that tolerates it for 0 seconds is evicted", objects.Pod("p").Tolerating(seconds(0, gpu)), one, true},
		{"one of two taints that is not tolerated is enough", objects.Pod("p").Tolerating(gpu), two, true},
		{"one of two taints that is tolerated for a limited time is enough", objects.Pod("p").Tolerating(gpu, seconds(60, corev1.Toleration{Key: "fpga", Operator: corev1.TolerationOpExists})), two, true},
		{"a pod that tolerates both without a limit stays", objects.Pod("p").Tolerating(gpu, corev1.Toleration{Key: "fpga", Operator: corev1.TolerationOpExists}), two, false},
		{"a limit for another taint does not matter", objects.Pod("p").Tolerating(gpu, seconds(300, corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists})), one, false},
		{"of two tolerations that match, the first counts: without a limit", objects.Pod("p").Tolerating(gpu, seconds(60, gpuExists)), one, false},
		{"of two tolerations that match, the first counts: with a limit", objects.Pod("p").Tolerating(seconds(60, gpuExists), gpu), one, true},
		{"a pod that has succeeded is not evicted", objects.Pod("p").Phase(corev1.PodSucceeded), one, false},
		{"nor is one that has failed", objects.Pod("p").Phase(corev1.PodFailed), one, false},
		{"a pending pod is evicted", objects.Pod("p").Phase(corev1.PodPending), one, true},
		{"a pod in phase Unknown, on an unreachable node, is evicted", objects.Pod("p").Phase(corev1.PodUnknown), one, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := tc.pod.Obj()
			if _, got := plan.EvictionDelay(pod, tc.taints); got != tc.want {
				t.Errorf("evicted = %v; want %v; tolerations %v", got, tc.want, pod.Spec.Tolerations)
			}
			if diff := cmp.Diff(tc.pod.Obj(), pod); diff != "" {
				t.Errorf("EvictionDelay changed the pod (-before +after):\n%s", diff)
			}
		})
	}
}
