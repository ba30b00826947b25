// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestEveryNodeIsTainted puts every node into a pool with taints. The managers must keep running,
// and it must be possible to reschedule and uninstall them. They must still leave a dead node and
// must not block a drain. The steps build on each other.
func TestEveryNodeIsTainted(t *testing.T) {
	i := &tainted{Cluster: framework.StartEmpty(t, "--nodes=0")}
	i.AddNodes(t, "worker", 3, "--pool=worker")
	mustHelm(t, append(helmArgs("install", framework.Chart()), "--kubeconfig", i.Kubeconfig, "--create-namespace")...)
	i.BecomeManager(t)
	i.StartManager(t, "--no-execute-share=100", "--no-execute-interval=100ms")
	i.eventuallyReady(t, nil)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the managers are not evicted", i.taint},
		{"they come back", i.comeBack},
		{"helm test", i.test},
		{"the Job of helm uninstall", i.cleanup},
		{"a dead node is left", i.deadNode},
		{"managers that are not ready hold up no drain", i.drain},
		{"the Deployment of kustomize", i.kustomize},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow()
		}
	}
}

// tainted is the state that the steps of TestEveryNodeIsTainted share.
type tainted struct{ *framework.Cluster }

// managers returns the managers' pods that are not terminating.
func (i *tainted) managers(t *testing.T) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := i.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": release}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// eventuallyReady waits until two managers are ready whose pods are not in `before` and not on a
// node in `not`.
func (i *tainted) eventuallyReady(t *testing.T, before []corev1.Pod, not ...string) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	framework.EventuallyWithin(t, 2*framework.Patience, "two managers are ready", func() error {
		if pods = i.managers(t); len(pods) != 2 {
			return fmt.Errorf("there are %d", len(pods))
		}
		for _, pod := range pods {
			if slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == pod.UID }) {
				return fmt.Errorf("%s is from before", pod.Name)
			}
			if slices.Contains(not, pod.Spec.NodeName) || !is(pod, corev1.PodReady) {
				return fmt.Errorf("%s on %q: %+v", pod.Name, pod.Spec.NodeName, pod.Status.Conditions)
			}
		}
		return nil
	})
	return pods
}

func is(pod corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

// taint taints all nodes through a pool. A pod without tolerations shows that the taints are
// effective.
func (i *tainted) taint(t *testing.T) {
	before := i.managers(t)
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: metav1.NamespaceDefault}, Spec: framework.App}
	if err := i.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "another user's pod is ready", func() error {
		if i.Refresh(t, other); !is(*other, corev1.PodReady) {
			return errors.New("not yet")
		}
		return nil
	})
	pool := framework.Pool("worker")
	pool.Spec.Taints = []tidekeeperv1.Taint{
		{Key: "example.com/keep-out", Effect: corev1.TaintEffectNoSchedule},
		{Key: "example.com/go-away", Value: "now", Effect: corev1.TaintEffectNoExecute},
	}
	if err := i.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "every node has the taints", func() error {
		nodes := &corev1.NodeList{}
		err := i.List(t.Context(), nodes)
		for _, node := range nodes.Items {
			if len(node.Spec.Taints) != 2 {
				err = errors.Join(err, fmt.Errorf("%s has %v", node.Name, node.Spec.Taints))
			}
		}
		return err
	})
	framework.Eventually(t, "another user's pod is evicted", func() error {
		if err := i.Get(t.Context(), client.ObjectKeyFromObject(other), other); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it still exists (%w)", err)
		}
		return nil
	})
	after := i.managers(t)
	for _, pod := range before {
		if !slices.ContainsFunc(after, func(a corev1.Pod) bool { return a.UID == pod.UID }) {
			t.Errorf("%s was evicted", pod.Name)
		}
	}
}

func (i *tainted) comeBack(t *testing.T) {
	before := i.managers(t)
	for _, pod := range before {
		i.Delete(t, &pod)
	}
	i.eventuallyReady(t, before)
}

// hook creates one of the chart's hook objects, and waits until its pod is assigned to a node and
// runs there.
func (i *tainted) hook(t *testing.T, key, name string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: renderChart(t, "--set=image.tag=test")[key]}
	if o.Object == nil {
		t.Fatalf("the chart has no %s", key)
	}
	// The function that parsed the manifest has removed this label.
	o.SetLabels(map[string]string{"app.kubernetes.io/name": name})
	if err := i.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	framework.EventuallyWithin(t, 2*framework.Patience, key+" runs", func() error {
		pods := &corev1.PodList{}
		if err := i.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": name}); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		if phase := pods.Items[0].Status.Phase; phase != corev1.PodRunning && phase != corev1.PodSucceeded {
			return fmt.Errorf("its pod is %s: %+v", phase, pods.Items[0].Status.Conditions)
		}
		return nil
	})
}

func (i *tainted) test(t *testing.T) {
	i.hook(t, "Pod "+namespace+"/tidekeeper-check", "tidekeeper-check")
}

func (i *tainted) cleanup(t *testing.T) {
	i.hook(t, "Job "+namespace+"/tidekeeper-cleanup", "tidekeeper-cleanup")
}

// deadNode checks that the managers leave a dead node. Pods are evicted from a dead node after two
// seconds in this test, instead of thirty.
func (i *tainted) deadNode(t *testing.T) {
	before := i.managers(t)
	i.patch(t, `[{"op":"replace","path":"/spec/template/spec/tolerations/0/tolerationSeconds","value":2},
		{"op":"replace","path":"/spec/template/spec/tolerations/1/tolerationSeconds","value":2}]`)
	pods := i.eventuallyReady(t, before)
	if seconds := *before[0].Spec.Tolerations[0].TolerationSeconds; seconds > 300 {
		t.Errorf("they are evicted after %d s", seconds)
	}
	dead := pods[0].Spec.NodeName
	i.Sandbox(t, "nodes", "not-ready", dead)
	i.eventuallyReady(t, pods[:1], dead)
	i.Sandbox(t, "nodes", "ready", dead)
	framework.Eventually(t, dead+" is ready again", func() error {
		node := framework.Node(dead)
		if i.Refresh(t, node); len(node.Spec.Taints) != 2 {
			return fmt.Errorf("it has %v", node.Spec.Taints)
		}
		return nil
	})
}

// patch patches the managers' Deployment with the given patch.
func (i *tainted) patch(t *testing.T, patch string) {
	t.Helper()
	if out, err := i.Kubectl("", "-n", namespace, "patch", "deployment", release, "--type=json", "-p", patch); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (i *tainted) drain(t *testing.T) {
	i.patch(t, `[{"op":"replace","path":"/spec/replicas","value":0}]`)
	framework.Eventually(t, "there are no managers", func() error {
		if pods := i.managers(t); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	i.patch(t, `[{"op":"add","path":"/spec/template/metadata/annotations/sandbox.tidekeeper.dev~1behavior","value":"never-ready"},
		{"op":"replace","path":"/spec/replicas","value":2}]`)
	var pods []corev1.Pod
	framework.Eventually(t, "two managers are running and not ready", func() error {
		if pods = i.managers(t); len(pods) != 2 {
			return fmt.Errorf("there are %d", len(pods))
		}
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	})
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: release, Namespace: namespace}}
	framework.Eventually(t, "no ready manager may be disrupted", func() error {
		if i.Refresh(t, budget); budget.Status.ExpectedPods != 2 || budget.Status.CurrentHealthy != 0 || budget.Status.DisruptionsAllowed != 0 {
			return fmt.Errorf("%+v", budget.Status)
		}
		return nil
	})
	for _, pod := range pods {
		if err := i.SubResource("eviction").Create(t.Context(), &pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: namespace}}); err != nil {
			t.Errorf("%s is not evicted: %v", pod.Name, err)
		}
	}
}

func (i *tainted) kustomize(t *testing.T) {
	if out, err := i.Kubectl("", "-n", namespace, "delete", "deployment", release); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := i.managers(t)
	if out, err := i.Kubectl("", "apply", "-f", filepath.Join(framework.Root(), "config", "manager", "deployment.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	i.eventuallyReady(t, before)
}
