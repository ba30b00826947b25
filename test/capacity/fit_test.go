// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// fit is the output of pools fit -o json for a single pool.
type fit struct {
	Pool        string               `json:"pool"`
	Members     int                  `json:"members"`
	Copies      int64                `json:"copies"`
	AtMost      []string             `json:"atMost"`
	OnEmptyNode int64                `json:"onEmptyNode"`
	Refused     []capacity.Count     `json:"refused"`
	Preemption  *capacity.Preemption `json:"preemption"`
}

// pendingGroup is a group of pods in the output of pools pending.
type pendingGroup struct {
	Namespace string
	Pods      []string
	Pools     []struct {
		Pool, Answer        string
		Copies, OnEmptyNode int64
		AtMost              []string
	}
	Preemption *capacity.Preemption
}

// pending runs pools pending for the world's pool. Exit codes other than 0 and those in `allowed` fail
// the test.
func (w *world) pending(t testing.TB, allowed ...int) (groups []pendingGroup) {
	t.Helper()
	answer(t, &groups, "", []string{"pools", "pending", w.name}, allowed...)
	return groups
}

// fit runs pools fit for the world's pool.
func (w *world) fit(t *testing.T, stdin string, args ...string) fit {
	t.Helper()
	var fits []fit
	answer(t, &fits, stdin, append([]string{"pools", "fit", w.name, "-n", w.name}, args...))
	if len(fits) != 1 || fits[0].Pool != w.name || fits[0].Members != len(w.nodes) {
		t.Fatalf("pools fit prints %+v, want one of %s with its %d nodes", fits, w.name, len(w.nodes))
	}
	return fits[0]
}

// TestFit checks that the scheduler places exactly as many copies of a pod as pools fit reports.
func TestFit(t *testing.T) {
	inWorlds(t, "fit", func(t *testing.T, w *world) {
		w.addNodes(t, 2+w.IntN(4))
		spec := w.shape()
		described := w.chance(20)
		if described {
			spec = w.plain()
		} else {
			w.defaults(t, &spec)
		}
		w.occupy(t)
		var says fit
		if described {
			says = w.fit(t, "", flagsOf(spec)...)
		} else {
			says = w.fitOf(t, spec)
		}
		if len(says.AtMost) > 0 {
			t.Fatalf("pools fit says at most, because of %s: all of the pod is evaluated", says.AtMost)
		}
		w.assertFits(t, spec, says.Copies)
	})
}

// assertFits fails the test unless the scheduler places exactly `want` copies of a pod. It may have
// tried a copy before it knew all nodes, and then tries it again. An additional copy is created only
// when all other copies are placed, so that the scheduler has seen all nodes.
func (w *world) assertFits(t *testing.T, spec corev1.PodSpec, want int64) {
	t.Helper()
	w.copies(t, spec, want)
	framework.Eventually(t, "the scheduler places each copy", func() error {
		if got, reason := w.copies(t, spec, 0); got != want {
			return fmt.Errorf("it places %d of %d: %s\n%s", got, want, reason, w.describe(spec))
		}
		return nil
	})
	if got, _ := w.copies(t, spec, 1); got != want {
		t.Fatalf("the scheduler places more than %d copies\n%s", want, w.describe(spec))
	}
}

// plain returns a pod spec that the flags of pools fit can describe, and that tolerates the pool's
// taints.
func (w *world) plain() corev1.PodSpec {
	s := corev1.PodSpec{NodeSelector: map[string]string{worldLabel: w.name}}
	for len(s.Containers) == 0 || len(s.Containers[0].Resources.Requests) == 0 {
		s.Containers = []corev1.Container{container("app", w.requests())}
	}
	for _, t := range w.pool.Spec.Taints {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpExists})
	}
	return s
}

// flagsOf returns the flags of pools fit that describe a pod from [world.plain].
func flagsOf(s corev1.PodSpec) (flags []string) {
	for name, amount := range s.Containers[0].Resources.Requests {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory:
			flags = append(flags, "--"+string(name)+"="+amount.String())
		case gpu:
			flags = append(flags, "--gpu="+amount.String())
		default:
			flags = append(flags, "--request", string(name)+"="+amount.String())
		}
	}
	return flags
}

// fitOf runs pools fit for a pod, and passes the pod to the command in a randomly chosen way.
func (w *world) fitOf(t *testing.T, spec corev1.PodSpec) fit {
	t.Helper()
	labels := map[string]string{"app": "copy"}
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: "copy", Namespace: w.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
	switch w.IntN(3) {
	case 0:
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "copy", Labels: labels}, Spec: spec}
		return w.fit(t, manifest(t, pod), "-f", "-")
	case 1:
		return w.fit(t, manifest(t, d), "-f", "-")
	default:
		d.TypeMeta = metav1.TypeMeta{}
		cluster.Apply(t, d)
		return w.fit(t, "", "--like", "deployment/copy")
	}
}

func manifest(t *testing.T, o any) string {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// describe describes the world for the message of a failed test.
func (w *world) describe(spec corev1.PodSpec) string {
	var text strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&text, "%s: %v, cordoned %t, taints %v, labels %v\n", n.Name, amounts(n.Status.Allocatable), n.Spec.Unschedulable, n.Spec.Taints, n.Labels)
	}
	copied, err := yaml.Marshal(spec)
	if err != nil {
		return err.Error()
	}
	return text.String() + string(copied)
}

func amounts(list corev1.ResourceList) map[corev1.ResourceName]string {
	texts := map[corev1.ResourceName]string{}
	for name, q := range list {
		texts[name] = q.String()
	}
	return texts
}
