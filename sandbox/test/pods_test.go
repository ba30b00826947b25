// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const prefix = "sandbox.tidekeeper.dev/"

// deploy creates a Deployment, which is deleted at the end of the test.
func deploy(t *testing.T, client kubernetes.Interface, name string, replicas int32, annotations map[string]string) {
	t.Helper()
	labels := map[string]string{"app": name}
	_, err := client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/none"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.AppsV1().Deployments("default").Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

func pods(t *testing.T, client kubernetes.Interface, app string) []corev1.Pod {
	t.Helper()
	list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// waitPods waits until the app has exactly count pods and the function "wanted" returns true for
// each of them.
func waitPods(t *testing.T, client kubernetes.Interface, app string, count int, wanted func(*corev1.Pod) bool) []corev1.Pod {
	t.Helper()
	var list []corev1.Pod
	waitFor(t, 30*time.Second, func() string {
		list = pods(t, client, app)
		matching := 0
		for i := range list {
			if wanted(&list[i]) {
				matching++
			}
		}
		if matching != count || len(list) != count {
			return fmt.Sprintf("%d of %d pods are as wanted, want %d: %+v", matching, len(list), count, list)
		}
		return ""
	})
	return list
}

func condition(pod *corev1.Pod, name corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return corev1.PodCondition{}
}

func ready(pod *corev1.Pod) bool {
	return condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func waitingFor(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

func TestDeploymentBecomesReadyAndGoes(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	deploy(t, client, "plain", 6, nil)
	ips := map[string]bool{}
	for _, pod := range waitPods(t, client, "plain", 6, ready) {
		if pod.Status.Phase != corev1.PodRunning || pod.Status.HostIP == "" {
			t.Errorf("a ready pod: %+v", pod.Status)
		}
		ips[pod.Status.PodIP] = true
	}
	if len(ips) != 6 || ips[""] {
		t.Errorf("six pods have the addresses %v", ips)
	}
	if err := client.AppsV1().Deployments("default").Delete(t.Context(), "plain", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitPods(t, client, "plain", 0, ready)
}

func TestSlow(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	deploy(t, client, "slow", 1, map[string]string{prefix + "behavior": "slow", prefix + "slow-after": "4s"})
	pod := waitPods(t, client, "slow", 1, ready)[0]
	took := condition(&pod, corev1.ContainersReady).LastTransitionTime.Sub(condition(&pod, corev1.PodReadyToStartContainers).LastTransitionTime.Time)
	// Timestamps in the API have a resolution of one second.
	if took < 3*time.Second {
		t.Errorf("the containers became ready after %s, want 4s or more", took)
	}
}

// TestOrderOfAStart checks that a pod's status changes in the same order as with a real kubelet. A
// pod without init containers becomes initialized first. The pod then gets its IP address with its
// pod sandbox, and runs once its images are pulled. Init containers run one after another.
func TestOrderOfAStart(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	for name, tc := range map[string]struct {
		inits []corev1.Container
		want  string
	}{
		"order": {nil, "Pending ContainerCreating: Initialized; " +
			"Pending ContainerCreating: Initialized PodReadyToStartContainers IP; " +
			"Running running: Initialized PodReadyToStartContainers IP; " +
			"Running running: ContainersReady Initialized PodReadyToStartContainers Ready IP"},
		"order-init": {[]corev1.Container{{Name: "z", Image: "i"}, {Name: "a", Image: "i"}}, "Pending PodInitializing/PodInitializing/PodInitializing:; " +
			"Pending running/PodInitializing/PodInitializing: PodReadyToStartContainers IP; " +
			"Pending Completed/running/PodInitializing: PodReadyToStartContainers IP; " +
			"Pending Completed/Completed/PodInitializing: Initialized PodReadyToStartContainers IP; " +
			"Running Completed/Completed/running: Initialized PodReadyToStartContainers IP; " +
			"Running Completed/Completed/running: ContainersReady Initialized PodReadyToStartContainers Ready IP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watching, err := client.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
			if err != nil {
				t.Fatal(err)
			}
			defer watching.Stop()
			_, err = client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{prefix + "initialized-after": "3s", prefix + "started-after": "1s"}},
				Spec:       corev1.PodSpec{InitContainers: tc.inits, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			})
			var seen []string
			for event := range watching.ResultChan() {
				pod := event.Object.(*corev1.Pod)
				if pod.Status.StartTime == nil {
					continue
				}
				seen = append(seen, summary(pod))
				if ready(pod) {
					for i := range tc.inits {
						// Timestamps in the API have a resolution of one second.
						c := pod.Status.InitContainerStatuses[i]
						if took := c.State.Terminated.FinishedAt.Sub(c.State.Terminated.StartedAt.Time); c.Name != tc.inits[i].Name || took < time.Second {
							t.Errorf("init container %d is %s and took %s", i, c.Name, took)
						}
					}
					break
				}
			}
			if got := strings.Join(seen, "; "); got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", strings.ReplaceAll(got, "; ", "\n"), strings.ReplaceAll(tc.want, "; ", "\n"))
			}
		})
	}
}

// summary formats a pod's status as a single line for comparisons.
func summary(pod *corev1.Pod) string {
	var containers []string
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil:
			containers = append(containers, c.State.Waiting.Reason)
		case c.State.Running != nil:
			containers = append(containers, "running")
		case c.State.Terminated != nil:
			containers = append(containers, c.State.Terminated.Reason)
		}
	}
	words := []string{string(pod.Status.Phase), strings.Join(containers, "/") + ":"}
	for _, name := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodInitialized, corev1.PodReadyToStartContainers, corev1.PodReady} {
		if condition(pod, name).Status == corev1.ConditionTrue {
			words = append(words, string(name))
		}
	}
	if pod.Status.PodIP != "" {
		words = append(words, "IP")
	}
	return strings.Join(words, " ")
}

// TestInitCrashLoop checks that a failing init container is restarted, and that the main containers
// do not start.
func TestInitCrashLoop(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	_, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "init-crash", Labels: map[string]string{"app": "init-crash"}, Annotations: map[string]string{prefix + "behavior": "init-crash-loop"}},
		Spec:       corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i", Image: "i"}}, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Pods("default").Delete(context.Background(), "init-crash", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
	waitPods(t, client, "init-crash", 1, func(pod *corev1.Pod) bool {
		return len(pod.Status.InitContainerStatuses) == 1 && pod.Status.InitContainerStatuses[0].RestartCount > 0 &&
			summary(pod) == "Pending CrashLoopBackOff/PodInitializing: PodReadyToStartContainers IP"
	})
}

// TestNodeWithoutAddress checks that pods with host networking become ready even on a node that was
// created without an address.
func TestNodeWithoutAddress(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	// The scheduler must put no pods of other tests on the node, which is soon gone.
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "no-address"}, Spec: corev1.NodeSpec{Unschedulable: true}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}) })
	_, err = client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-host", Labels: map[string]string{"app": "on-host"}},
		Spec:       corev1.PodSpec{NodeName: node.Name, HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Pods("default").Delete(context.Background(), "on-host", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
	waitPods(t, client, "on-host", 1, ready)
}

func TestSetTimes(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	deploy(t, client, "timed", 1, map[string]string{
		prefix + "initialized-after": "2s", prefix + "containers-ready-after": "3s", prefix + "ready-after": "4s",
	})
	pod := waitPods(t, client, "timed", 1, ready)[0]
	at := func(name corev1.PodConditionType) time.Time { return condition(&pod, name).LastTransitionTime.Time }
	for _, phase := range []struct {
		from, to corev1.PodConditionType
		want     time.Duration
	}{
		{corev1.PodScheduled, corev1.PodInitialized, 0},
		{corev1.PodInitialized, corev1.PodReadyToStartContainers, 2 * time.Second},
		{corev1.PodReadyToStartContainers, corev1.ContainersReady, 3 * time.Second},
		{corev1.ContainersReady, corev1.PodReady, 4 * time.Second},
	} {
		// Allow one second less, because API timestamps have a resolution of one second. There is
		// no maximum, because the machine may be busy.
		if took := at(phase.to).Sub(at(phase.from)); took < phase.want-time.Second {
			t.Errorf("from %s to %s it took %s, want %s or more", phase.from, phase.to, took, phase.want)
		}
	}
}

func TestNeverReady(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	deploy(t, client, "never", 1, map[string]string{prefix + "behavior": "never-ready"})
	waitPods(t, client, "never", 1, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	// Once a pod that was created later is ready, the first pod must still be unready.
	deploy(t, client, "later", 1, nil)
	waitPods(t, client, "later", 1, ready)
	pod := pods(t, client, "never")[0]
	if c := condition(&pod, corev1.ContainersReady); c.Status != corev1.ConditionFalse || c.Reason != "ContainersNotReady" {
		t.Errorf("condition %+v", c)
	}
}

func TestCrashLoop(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	deploy(t, client, "crash", 1, map[string]string{prefix + "behavior": "crash-loop"})
	pod := waitPods(t, client, "crash", 1, func(pod *corev1.Pod) bool {
		return waitingFor("CrashLoopBackOff")(pod) && pod.Status.ContainerStatuses[0].RestartCount >= 2
	})[0]
	if last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 1 {
		t.Errorf("its last termination state is %+v", last)
	}
}

func TestImagePullBackOff(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	deploy(t, client, "pull", 2, map[string]string{prefix + "behavior": "image-pull-backoff"})
	waitPods(t, client, "pull", 2, waitingFor("ImagePullBackOff"))
}

func TestMistakenAnnotationIsShown(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	deploy(t, client, "odd", 1, map[string]string{prefix + "behavior": "odd"})
	waitPods(t, client, "odd", 1, waitingFor("CreateContainerConfigError"))
}

func TestJobCompletes(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	_, err := client.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "work"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "c", Image: "example.com/none"}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, 30*time.Second, func() string {
		job, err := client.BatchV1().Jobs("default").Get(t.Context(), "work", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if job.Status.Succeeded != 1 {
			return fmt.Sprintf("the job: %+v", job.Status)
		}
		return ""
	})
}
