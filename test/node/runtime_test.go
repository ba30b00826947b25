// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// root returns the path of the root file system that the node's containerd uses.
func (n *node) root(t *testing.T) string {
	t.Helper()
	for _, p := range processesOf(t, n.Dir) {
		if filepath.Base(p.program) == "containerd" {
			return fmt.Sprintf("/proc/%d/root", p.pid)
		}
	}
	t.Fatal("containerd does not run")
	return ""
}

// ctr runs ctr, containerd's command-line client, and returns its output.
func (n *node) ctr(t *testing.T, args ...string) string {
	t.Helper()
	path, err := framework.Binary("NODE_CTR_BIN", "node/ctr")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(n.root(t), "run", "containerd", "containerd.sock")
	out, err := exec.CommandContext(t.Context(), path, append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...).Output()
	if err != nil {
		t.Fatalf("ctr %v: %v", args, err)
	}
	return string(out)
}

// created returns the creation time of a pod's container, as reported by containerd.
func (n *node) created(t *testing.T, pod *corev1.Pod) time.Time {
	t.Helper()
	var info struct{ CreatedAt time.Time }
	if err := json.Unmarshal([]byte(n.ctr(t, "containers", "info", containerOf(t, pod))), &info); err != nil {
		t.Fatal(err)
	}
	return info.CreatedAt
}

// handlerOf returns the name of the container runtime that runs a pod's container. Each runtime has
// its own directory of running containers.
func (n *node) handlerOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(n.root(t), "run", "runtimes", "*", "k8s.io", containerOf(t, pod)))
	if err != nil || len(found) != 1 {
		t.Fatalf("the container of %s is run by %v, %v", pod.Name, found, err)
	}
	return filepath.Base(filepath.Dir(filepath.Dir(found[0])))
}

// runs waits until a pod is running, and returns the pod.
func (n *node) runs(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	n.awaitRunning(t, name)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	n.Refresh(t, pod)
	return pod
}

// awaitHandler waits until the pool's RuntimeClass has the given handler.
func (n *node) awaitHandler(t *testing.T, handler string) {
	t.Helper()
	framework.Eventually(t, "the RuntimeClass of the pool has the handler "+handler, func() error {
		var class nodev1.RuntimeClass
		if err := n.Get(t.Context(), client.ObjectKey{Name: poolClass}, &class); err != nil {
			return err
		}
		if class.Handler != handler {
			return fmt.Errorf("it has %s", class.Handler)
		}
		return nil
	})
}

// poolClass is the name of the pool's RuntimeClass.
const poolClass = "node-pool-worker"

// runtimeClass checks that pods with the pool's RuntimeClass run in the node's second container
// runtime.
func (n *node) runtimeClass(t *testing.T) {
	n.kubectl(t, "label", "node", nodeName, "node-role.kubernetes.io/worker=")
	pool := framework.Pool("worker")
	pool.Spec.Handler = "runc-2"
	pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"node-pool.example.com/worker": "10"}
	n.create(t, pool)
	n.awaitHandler(t, "runc-2")
	n.create(t, app("classed", poolClass))
	n.create(t, app("plain", ""))
	for name, want := range map[string]string{"classed": "runc-2", "plain": "runc"} {
		if got := n.handlerOf(t, n.runs(t, name)); got != want {
			t.Errorf("%s is run by %s, want %s", name, got, want)
		}
	}
}

// handler checks that a change of the pool's handler affects only new pods: existing pods stay in
// the runtime that started them.
func (n *node) handler(t *testing.T) {
	before := n.runs(t, "classed")
	pool := framework.Pool("worker")
	n.Change(t, pool, func() { pool.Spec.Handler = "runc" })
	n.awaitHandler(t, "runc")
	n.create(t, app("changed", poolClass))
	if got := n.handlerOf(t, n.runs(t, "changed")); got != "runc" {
		t.Errorf("the new pod is run by %s, want runc", got)
	}
	after := n.runs(t, "classed")
	if got := n.handlerOf(t, after); got != "runc-2" || containerOf(t, after) != containerOf(t, before) {
		t.Errorf("the old pod is run by %s, want runc-2 and the same container", got)
	}
	if out := n.kubectl(t, "exec", "classed", "--", "/app", "status"); statusOf(out)["Name"] != "app" {
		t.Errorf("a command in the old pod says\n%s", out)
	}
}

// seccomp checks that the container runtime's seccomp profile is enforced, except in a pod that
// opts out of it.
func (n *node) seccomp(t *testing.T) {
	if !filters(t) {
		t.Skip("runc was built without libseccomp, so that no system call is refused")
	}
	for profile, want := range map[corev1.SeccompProfileType]struct{ mode, refused string }{
		corev1.SeccompProfileTypeRuntimeDefault: {"2", "true\n"},
		corev1.SeccompProfileTypeUnconfined:     {"0", "false\n"},
	} {
		name := map[corev1.SeccompProfileType]string{corev1.SeccompProfileTypeRuntimeDefault: "filtered", corev1.SeccompProfileTypeUnconfined: "unfiltered"}[profile]
		pod := app(name, "")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: profile}}
		n.create(t, pod)
		n.awaitRunning(t, name)
		if got := statusOf(n.kubectl(t, "exec", name, "--", "/app", "status"))["Seccomp"]; got != want.mode {
			t.Errorf("%s: the mode of seccomp is %q, want %s", profile, got, want.mode)
		}
		if got := n.kubectl(t, "exec", name, "--", "/app", "refused"); got != want.refused {
			t.Errorf("%s: keyctl is refused: %q, want %q", profile, got, want.refused)
		}
	}
}
