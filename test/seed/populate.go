// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Onlookers lists the components that watch all pods. Stop them while many pods are written,
// because each of them would process all of the writes.
var Onlookers = []string{"kube-controller-manager", "kube-scheduler", "kubelets"}

// WriteAll executes the operations in large transactions.
func (e *Etcd) WriteAll(t *testing.T, operations []Operation) {
	t.Helper()
	for some := range slices.Chunk(operations, txnSize) {
		if err := e.Write(some); err != nil {
			t.Fatal(err)
		}
	}
}

// WritePods writes the given number of pods on the given number of nodes, and the pods' owners. It
// applies `changes` to each pod, and returns the total stored size in bytes.
func (e *Etcd) WritePods(t *testing.T, pods, nodes int, now time.Time, changes ...func(*corev1.Pod)) (bytes int) {
	t.Helper()
	var pending []Operation
	put := func(key string, value []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(value)
		if pending = append(pending, Operation{key, value}); len(pending) == txnSize {
			e.WriteAll(t, pending)
			pending = pending[:0]
		}
	}
	for i := range pods {
		if o := ownerOf(i, nodes); i == o.first {
			o.pods = min(o.pods, pods-i)
			key, object, version := objectOf(o, nodes, now)
			value, err := Encode(object, version)
			put(key, value, err)
		}
		pod := PodOf(i, nodes, now)
		for _, change := range changes {
			change(pod)
		}
		value, err := Encode(pod, corev1.SchemeGroupVersion)
		put(PodKey(pod), value, err)
	}
	e.WriteAll(t, pending)
	return bytes
}

// WriteDeployments writes fully rolled out Deployments, with the fields that the API server sets.
func (e *Etcd) WriteDeployments(t *testing.T, deployments []*appsv1.Deployment, now time.Time) {
	t.Helper()
	var pending []Operation
	for i, d := range deployments {
		d.UID, d.Generation, d.CreationTimestamp = uid(3, i), 1, metav1.NewTime(now)
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = new(int32(10)), new(int32(600))
		spec := &d.Spec.Template.Spec
		spec.RestartPolicy, spec.DNSPolicy, spec.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, corev1.DefaultSchedulerName
		spec.TerminationGracePeriodSeconds, spec.SecurityContext = new(int64(30)), &corev1.PodSecurityContext{}
		c := &spec.Containers[0]
		c.ImagePullPolicy, c.TerminationMessagePath, c.TerminationMessagePolicy = corev1.PullIfNotPresent, "/dev/termination-log", corev1.TerminationMessageReadFile
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue},
		}}
		value, err := Encode(d, appsv1.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, Operation{"/registry/deployments/" + d.Namespace + "/" + d.Name, value})
	}
	e.WriteAll(t, pending)
}
