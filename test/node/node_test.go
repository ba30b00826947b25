// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// nodeName is the name of the real node.
const nodeName = "real-1"

// startup is the timeout for pods with probes to become ready while other tests run.
const startup = 3 * framework.Patience

// TestNode checks behavior that simulated nodes can only fake. The steps build on each other.
func TestNode(t *testing.T) {
	before := machine(t, "")
	n := &node{Cluster: framework.StartReal(t)}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"a real kubelet reports the node", n.reported},
		{"the image by the Dockerfile's recipe", n.image},
		{"the manager, by install.yaml of the release", n.install},
		{"the kernel confines the managers", n.confined},
		{"logs, exec and port-forward of the manager", n.streams},
		{"a standby leads when the leader is deleted", n.takeOver},
		{"logs, exec and port-forward of a workload", n.workload},
		{"the timeline of a restart", n.timeline},
		{"filters of system calls", n.seccomp},
		{"a pod of the pool's RuntimeClass", n.runtimeClass},
		{"the pool's handler changes", n.handler},
		{"a NoExecute taint evicts", n.noExecute},
		{"containerd and the kubelet are killed", n.killed},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow()
		}
	}
	n.Sandbox(t, "down")
	nothingLeft(t, before, n.Dir)
}

// node is a cluster with real nodes.
type node struct{ *framework.Cluster }

func (n *node) reported(t *testing.T) {
	var found corev1.Node
	if err := n.Get(t.Context(), client.ObjectKey{Name: nodeName}, &found); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(found.Status.NodeInfo.ContainerRuntimeVersion, "containerd://") {
		t.Errorf("the container runtime is %q", found.Status.NodeInfo.ContainerRuntimeVersion)
	}
}

// isReady reports whether a pod is ready and not terminating.
func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// managers returns the managers' ready pods, or an error unless there are exactly two.
func (n *node) managers(t *testing.T) ([]corev1.Pod, error) {
	t.Helper()
	var list corev1.PodList
	err := n.List(t.Context(), &list, client.InNamespace(framework.ManagerNamespace), client.MatchingLabels{"app.kubernetes.io/name": "tidekeeper"})
	if err != nil {
		return nil, err
	}
	var ready []corev1.Pod
	for _, pod := range list.Items {
		if isReady(&pod) {
			ready = append(ready, pod)
		}
	}
	if len(ready) != 2 {
		return nil, fmt.Errorf("%d managers are ready of %d, want 2", len(ready), len(list.Items))
	}
	return ready, nil
}

// lease returns the Lease of the managers' leader election.
func (n *node) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: "tidekeeper"}}
	if err := n.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return lease
}

// leader returns the name of the leading manager's pod.
func (n *node) leader(t *testing.T) (string, error) {
	t.Helper()
	lease := n.lease(t)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("no manager leads")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name, nil
}

// load builds an image that contains a program and loads it into the nodes.
func (n *node) load(t *testing.T, image, variable, name string) {
	t.Helper()
	program, err := framework.Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	n.Sandbox(t, "nodes", "load-image", image, program)
}

func (n *node) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return n.MustKubectl(t, "", args...)
}

// install installs the manager with install.yaml and the release's image.
func (n *node) install(t *testing.T) {
	n.loadRelease(t)
	n.Sandbox(t, "nodes", "load-image", "app:1", framework.Build(t, "./test/node/app"))
	n.kubectl(t, "apply", "--filename="+released(t, "install.yaml"))
	framework.EventuallyWithin(t, startup, "two managers are ready by their probes", func() error {
		pods, err := n.managers(t)
		for _, pod := range pods {
			if pod.Status.PodIP == "" || pod.Status.PodIP == pod.Status.HostIP {
				err = errors.Join(err, fmt.Errorf("%s has the address %q", pod.Name, pod.Status.PodIP))
			}
		}
		return err
	})
	framework.Eventually(t, "one of them leads", func() error {
		_, err := n.leader(t)
		return err
	})
	n.noWarnings(t)
}

// noWarnings checks that the managers' containers started without restarts and without warnings.
// Warnings about the pods themselves are ignored: a node, a token or an IP address may have been
// late, and the pods are ready now. Failed probes are ignored too, because the manager may not have
// served them yet.
func (n *node) noWarnings(t *testing.T) {
	t.Helper()
	pods, err := n.managers(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount != 0 {
				t.Errorf("%s in %s was restarted %d times", status.Name, pod.Name, status.RestartCount)
			}
		}
	}
	var list corev1.EventList
	if err := n.List(t.Context(), &list, client.InNamespace(framework.ManagerNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.FieldPath != "" && e.Reason != "Unhealthy" {
			t.Errorf("a warning about %s of %s: %s: %s", e.InvolvedObject.FieldPath, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}

func (n *node) takeOver(t *testing.T) {
	first, err := n.leader(t)
	if err != nil {
		t.Fatal(err)
	}
	n.Delete(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: first}})
	n.otherLeads(t, first)
	framework.EventuallyWithin(t, startup, "there are two again", func() error {
		_, err := n.managers(t)
		return err
	})
}

// otherLeads waits until a manager other than `first` leads.
func (n *node) otherLeads(t *testing.T, first string) {
	t.Helper()
	framework.EventuallyWithin(t, startup, "the other manager leads", func() error {
		now, err := n.leader(t)
		if err == nil && now == first {
			err = errors.New(first + " still leads")
		}
		return err
	})
}

// app returns a pod that runs the program in test/node/app.
func app(name, class string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "app", Image: "app:1", ImagePullPolicy: corev1.PullNever}},
			TerminationGracePeriodSeconds: new(int64(5)),
		},
	}
	if class != "" {
		pod.Spec.RuntimeClassName = &class
	}
	return pod
}

// create creates an object that later steps also use.
func (n *node) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := n.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (n *node) awaitRunning(t *testing.T, name string) {
	t.Helper()
	framework.EventuallyWithin(t, startup, name+" runs", func() error {
		var pod corev1.Pod
		if err := n.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning || !strings.HasPrefix(pod.Status.PodIP, "172.31.1.") {
			return fmt.Errorf("phase %s, address %q, %v", pod.Status.Phase, pod.Status.PodIP, pod.Status.ContainerStatuses)
		}
		return nil
	})
}

// noExecute checks that the kubelet stops a pod that does not tolerate the pool's NoExecute taint.
func (n *node) noExecute(t *testing.T) {
	n.create(t, app("evicted", ""))
	n.awaitRunning(t, "evicted")
	var pool tidekeeperv1.NodePool
	pool.Name = "worker"
	n.Change(t, &pool, func() {
		pool.Spec.Taints = []tidekeeperv1.Taint{{Key: "node-pool.example.com", Value: "worker", Effect: corev1.TaintEffectNoExecute}}
	})
	// Admission copies a RuntimeClass's tolerations to pods at their creation, when this
	// RuntimeClass had none.
	for _, name := range []string{"evicted", "classed", "changed"} {
		framework.EventuallyWithin(t, startup, name+" is gone", func() error {
			err := n.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.Pod{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(err, errors.New("it is there"))
		})
	}
	framework.Eventually(t, "the RuntimeClass tolerates the taint", func() error {
		var class nodev1.RuntimeClass
		if err := n.Get(t.Context(), client.ObjectKey{Name: poolClass}, &class); err != nil {
			return err
		}
		if class.Scheduling == nil || len(class.Scheduling.Tolerations) == 0 {
			return errors.New("it has no toleration")
		}
		return nil
	})
	n.create(t, app("tolerant", poolClass))
	n.awaitRunning(t, "tolerant")
	// The managers keep running, because they tolerate all taints.
	if _, err := n.managers(t); err != nil {
		t.Error(err)
	}
}

// killed checks that containers survive the death of the kubelet and containerd, which are then
// started again.
func (n *node) killed(t *testing.T) {
	before, err := n.managers(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"containerd", "kubelet"} {
		for _, p := range processesOf(t, n.Dir) {
			if filepath.Base(p.program) == name {
				p.kill(t)
			}
		}
	}
	n.create(t, app("after", poolClass))
	n.awaitRunning(t, "after")
	framework.EventuallyWithin(t, startup, "the managers are as before", func() error {
		after, err := n.managers(t)
		if err != nil {
			return err
		}
		for _, pod := range before {
			if !slices.ContainsFunc(after, func(p corev1.Pod) bool {
				return p.UID == pod.UID && p.Status.ContainerStatuses[0].RestartCount == pod.Status.ContainerStatuses[0].RestartCount
			}) {
				return fmt.Errorf("%s was restarted or replaced", pod.Name)
			}
		}
		return nil
	})
}
