// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
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

// nodeName is the name of the node.
const nodeName = "real-1"

// startup is how long pods with probes may take, beside other tests.
const startup = 3 * framework.Patience

// TestNode: what is true on simulated nodes only by assumption. The steps build on each
// other.
func TestNode(t *testing.T) {
	before := machine(t, "")
	n := &node{Cluster: framework.StartReal(t)}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"a real kubelet reports the node", n.reported},
		{"the manager's image, as it is installed", n.install},
		{"logs, exec and port-forward", n.streams},
		{"a standby leads when the leader is deleted", n.takeOver},
		{"a pod of the pool's RuntimeClass", n.runtimeClass},
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

// node is a cluster of one real node.
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

// pods returns the pods of the manager that are ready.
func (n *node) managers(t *testing.T) ([]corev1.Pod, error) {
	t.Helper()
	var list corev1.PodList
	err := n.List(t.Context(), &list, client.InNamespace(framework.ManagerNamespace), client.MatchingLabels{"app.kubernetes.io/name": "tidekeeper"})
	if err != nil {
		return nil, err
	}
	var ready []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready = append(ready, pod)
		}
	}
	if len(ready) != 2 {
		return nil, fmt.Errorf("%d managers are ready of %d, want 2", len(ready), len(list.Items))
	}
	return ready, nil
}

// leader returns the manager that leads.
func (n *node) leader(t *testing.T) (string, error) {
	t.Helper()
	var lease coordinationv1.Lease
	if err := n.Get(t.Context(), client.ObjectKey{Namespace: framework.ManagerNamespace, Name: "tidekeeper"}, &lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("no manager leads")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name, nil
}

// load makes an image of a program.
func (n *node) load(t *testing.T, image, variable, name string) {
	t.Helper()
	program, err := framework.Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	n.Sandbox(t, "image", "load", image, program)
}

func (n *node) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := n.Kubectl("", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// install installs the manager as docs/install.md says.
func (n *node) install(t *testing.T) {
	n.load(t, "tidekeeper:latest", "TIDEKEEPER_BIN", "tidekeeper")
	n.load(t, "app:1", "NODE_PAUSE_BIN", "node/pause")
	n.kubectl(t, "apply", "-k", filepath.Join(framework.Root(), "config", "default"))
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
	for _, event := range n.warnings(t, framework.ManagerNamespace) {
		// Probes may fail before the manager serves them.
		if event.Reason != "Unhealthy" {
			t.Errorf("a warning about %s: %s: %s", event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
}

func (n *node) warnings(t *testing.T, namespace string) []corev1.Event {
	t.Helper()
	var list corev1.EventList
	if err := n.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Type != corev1.EventTypeWarning })
}

func (n *node) streams(t *testing.T) {
	pods, err := n.managers(t)
	if err != nil {
		t.Fatal(err)
	}
	pod := pods[0].Name
	if out := n.kubectl(t, "logs", "-n", framework.ManagerNamespace, pod); !strings.Contains(out, `"msg"`) && !strings.Contains(out, "msg=") {
		t.Errorf("logs: got %q", out)
	}
	if out := n.kubectl(t, "exec", "-n", framework.ManagerNamespace, pod, "--", "/tidekeeper", "--version"); !strings.Contains(out, "tidekeeper") {
		t.Errorf("exec: got %q", out)
	}
	// The address of a pod is reached through the API server, too.
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8081/proxy/readyz", framework.ManagerNamespace, pod)
	if out := n.kubectl(t, "get", "--raw", path); !strings.HasPrefix(out, "ok") {
		t.Errorf("readyz through the API server: got %q", out)
	}
	n.forward(t, pod)
}

// forwarding is what kubectl says once it forwards a port.
var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

// forward asks a manager whether it is ready through a forwarded port.
func (n *node) forward(t *testing.T, pod string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	binary, err := framework.Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, binary, "kubectl", "--data-dir", n.Dir, "port-forward", "-n", framework.ManagerNamespace, pod, ":8081")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = command.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	match := forwarding.FindStringSubmatch(line)
	if err != nil || match == nil {
		t.Fatalf("port-forward: got %q, %v", line, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+match[1]+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("readyz through the forwarded port: %s %s %v", response.Status, body, err)
	}
}

func (n *node) takeOver(t *testing.T) {
	first, err := n.leader(t)
	if err != nil {
		t.Fatal(err)
	}
	n.Delete(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: first}})
	framework.EventuallyWithin(t, startup, "the other manager leads", func() error {
		now, err := n.leader(t)
		if err == nil && now == first {
			err = errors.New(first + " still leads")
		}
		return err
	})
	framework.EventuallyWithin(t, startup, "there are two again", func() error {
		_, err := n.managers(t)
		return err
	})
}

// app is a pod of a program that does nothing.
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

// create creates an object for this step and those after it.
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

// runtimeClass: the second runtime of the node runs the pods of a pool.
func (n *node) runtimeClass(t *testing.T) {
	n.kubectl(t, "label", "node", nodeName, "node-role.kubernetes.io/worker=")
	pool := framework.Pool("worker")
	pool.Spec.Handler = "runc-2"
	pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"node-pool.example.com/worker": "10"}
	n.create(t, pool)
	class := "node-pool-worker"
	framework.Eventually(t, "the pool has its RuntimeClass", func() error {
		return n.Get(t.Context(), client.ObjectKey{Name: class}, &nodev1.RuntimeClass{})
	})
	n.create(t, app("classed", class))
	n.awaitRunning(t, "classed")
}

// noExecute: a pod that does not tolerate the pool's taint is stopped by its kubelet.
func (n *node) noExecute(t *testing.T) {
	n.create(t, app("evicted", ""))
	n.awaitRunning(t, "evicted")
	var pool tidekeeperv1.NodePool
	pool.Name = "worker"
	n.Change(t, &pool, func() {
		pool.Spec.Taints = []tidekeeperv1.Taint{{Key: "node-pool.example.com", Value: "worker", Effect: corev1.TaintEffectNoExecute}}
	})
	// Pods get the tolerations of their RuntimeClass when they are created, and that one
	// had none then.
	for _, name := range []string{"evicted", "classed"} {
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
		if err := n.Get(t.Context(), client.ObjectKey{Name: "node-pool-worker"}, &class); err != nil {
			return err
		}
		if class.Scheduling == nil || len(class.Scheduling.Tolerations) == 0 {
			return errors.New("it has no toleration")
		}
		return nil
	})
	n.create(t, app("tolerant", "node-pool-worker"))
	n.awaitRunning(t, "tolerant")
	// The manager tolerates all taints.
	if _, err := n.managers(t); err != nil {
		t.Error(err)
	}
}

// killed: containers outlive the kubelet and containerd, which are started again.
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
	n.create(t, app("after", "node-pool-worker"))
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
