// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestRunAsServiceAccount checks that a program that does not know about sandboxes sees the
// environment of a pod, and has the permissions of its ServiceAccount and no others.
func TestRunAsServiceAccount(t *testing.T) {
	s := sharedSandbox(t)
	c := s.client(t)
	namespace := newNamespace(t, s)
	// The user's own kubeconfig must not affect the program.
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(filepath.Join(s.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(kubeconfig), s.status(t).APIServer, "https://127.0.0.1:1")
	elsewhere := filepath.Join(home, "kubeconfig")
	for _, file := range []string{elsewhere, filepath.Join(home, ".kube", "config")} {
		if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := hostFiles(t)

	r := startRunWith(t, s, []string{"HOME=" + home, "KUBECONFIG=" + elsewhere},
		"--service-account", namespace+"/operator", "--", operator(t), "--exit-code=7")
	r.says("ready")
	name := r.says("env POD_NAME")
	r.wants(map[string]string{
		"namespace":                  namespace,
		"env POD_NAMESPACE":          namespace,
		"host":                       name,
		"arguments":                  "--exit-code=7",
		"same API server by any way": "true",
		"configmaps":                 "<nil>",
		"lease":                      "<nil>",
		"secrets":                    forbidden("operator", "list", "secrets", "", namespace),
	})
	pod, err := c.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pod.Status.Phase != corev1.PodRunning || podCondition(pod, corev1.PodReady) != corev1.ConditionTrue ||
		pod.Status.PodIP == "" || pod.Spec.ServiceAccountName != "operator" {
		t.Errorf("its Pod is %s, ready: %s, with address %q and account %s, want a ready one of the account operator",
			pod.Status.Phase, podCondition(pod, corev1.PodReady), pod.Status.PodIP, pod.Spec.ServiceAccountName)
	}
	lease, err := c.CoordinationV1().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != name {
		t.Errorf("the lease of the program: %v, %v", lease, err)
	}
	if err := r.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(); code != 7 {
		t.Errorf("exit code %d, want that of the program, 7:\n%s", code, r.Output())
	}
	wantNothingLeft(t, c, namespace, "operator")
	if after := hostFiles(t); after != before {
		t.Errorf("files of the machine changed from\n%s\nto\n%s", before, after)
	}
}

// TestRunWithoutRights checks that a program for which no ServiceAccount is given runs under a new
// ServiceAccount without permissions.
func TestRunWithoutRights(t *testing.T) {
	s := sharedSandbox(t)
	r := startRun(t, s, "--", operator(t), "--once")
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, r.Output())
	}
	r.wants(map[string]string{"namespace": "default"})
	for key, resource := range map[string]string{"configmaps": "configmaps", "secrets": "secrets", "lease": "leases"} {
		if got := r.says(key); !strings.Contains(got, "cannot") || !strings.Contains(got, fmt.Sprintf("resource %q", resource)) {
			t.Errorf("%s: %s, want that it is forbidden", key, got)
		}
	}
	wantNothingLeft(t, s.client(t), "default")
}

// TestRunAsksKubelets checks that a program can read kubelet metrics only if RBAC allows it, and
// can send no other requests to kubelets.
func TestRunAsksKubelets(t *testing.T) {
	s := sharedSandbox(t)
	c := s.client(t)
	namespace := newNamespace(t, s)
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := nodes.Items[0].Status.Addresses[0].Address
	asks := func(metrics string, flags ...string) {
		t.Helper()
		flags = append(flags, "--service-account", namespace+"/operator", "--", operator(t), "--once", "--kubelet="+address)
		r := startRun(t, s, flags...)
		if code := r.wait(); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, r.Output())
		}
		if got := r.says("kubelet /metrics/resource"); !strings.HasPrefix(got, metrics) {
			t.Errorf("%v: metrics: %s, want %s", flags, got, metrics)
		}
		if got := r.says("kubelet /containerLogs/default/web/app"); strings.HasPrefix(got, "200") || strings.HasPrefix(got, "404") {
			t.Errorf("%v: logs: %s, want that it does not answer", flags, got)
		}
	}
	asks("403 Forbidden: system:serviceaccount:"+namespace+":operator may not get nodes/metrics", "--kubelets")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kubelet-api-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "operator"}},
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitMay(t, s, namespace, "operator", "get", "nodes", "--subresource=metrics")
	asks("200 OK: # HELP ", "--kubelets")
}

// TestRunFromDeployment checks that a program that runs in place of a Deployment's pod has the
// environment of the Deployment's container, and that the Deployment's number of pods does not
// change.
func TestRunFromDeployment(t *testing.T) {
	s := sharedSandbox(t)
	c := s.client(t)
	namespace := newNamespace(t, s)
	file := apply(t, s, namespace, operatorManifest)
	s.must(t, "kubectl", "-n", namespace, "rollout", "status", "deployment/operator", longTimeout)

	t.Run("in the API server", func(t *testing.T) {
		r := startRun(t, s, "--from", "deployment/"+namespace+"/operator", "--", operator(t))
		r.says("ready")
		name := r.says("env POD_NAME")
		pod, err := c.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.wants(map[string]string{
			"arguments":          "--exit-code=5",
			"namespace":          namespace,
			"env NODE":           pod.Spec.NodeName,
			"env IP":             pod.Status.PodIP,
			"env ACCOUNT":        "operator",
			"env FROM_CONFIGMAP": "green",
			"env FROM_SECRET":    "swordfish",
			"env ALL_color":      "green",
			"env GREETING":       "hello from " + name,
			"env LIMIT":          "2",
			"configmaps":         "<nil>",
			"secrets":            forbidden("operator", "list", "secrets", "", namespace),
		})
		// Programs find their Deployment through the Pod's owner, a ReplicaSet.
		if len(pod.OwnerReferences) != 1 || pod.OwnerReferences[0].Kind != "ReplicaSet" {
			t.Fatalf("the owners of its Pod are %v, want the ReplicaSet", pod.OwnerReferences)
		}
		set, err := c.AppsV1().ReplicaSets(namespace).Get(t.Context(), pod.OwnerReferences[0].Name, metav1.GetOptions{})
		if err != nil || set.UID != pod.OwnerReferences[0].UID {
			t.Errorf("the ReplicaSet that owns its Pod: %v", err)
		}
		// Scaling the Deployment makes its controllers count the pods again.
		s.must(t, "kubectl", "-n", namespace, "scale", "deployment/operator", "--replicas=3")
		s.must(t, "kubectl", "-n", namespace, "rollout", "status", "deployment/operator", longTimeout)
		if got := controlled(t, s, namespace); got != 3 {
			t.Errorf("the Deployment has %d pods, want the 3 of its own", got)
		}
		if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("its Pod: %v", err)
		}
		_ = r.Signal(syscall.SIGTERM)
		if code := r.wait(); code != 5 {
			t.Errorf("exit code %d, want 5 as the arguments of the container say:\n%s", code, r.Output())
		}
		wantNothingLeft(t, c, namespace, "operator")
	})
	t.Run("in a file, with arguments", func(t *testing.T) {
		manifest, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := strings.Replace(string(manifest), "  name: operator\n", "  name: operator\n  namespace: "+namespace+"\n", 1)
		if err := os.WriteFile(file, []byte(named), 0o600); err != nil {
			t.Fatal(err)
		}
		r := startRun(t, s, "--from", file, "--", operator(t), "--once")
		r.says("ended")
		r.wants(map[string]string{"arguments": "--once", "env FROM_SECRET": "swordfish", "configmaps": "<nil>"})
		if code := r.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

const operatorManifest = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: operator
spec:
  replicas: 2
  selector: {matchLabels: {app: operator}}
  template:
    metadata:
      labels: {app: operator}
      # How simulated containers behave does not concern a program that runs.
      annotations: {sandbox.tidekeeper.dev/initialized-after: 500ms}
    spec:
      serviceAccountName: operator
      # The simulated kubelets need no image, and a real program has none.
      containers:
      - name: manager
        image: example.com/operator
        command: [/manager]
        args: [--exit-code=$(CODE)]
        resources: {limits: {cpu: "2"}}
        ports: [{name: webhook, containerPort: 9443}]
        envFrom:
        - {prefix: ALL_, configMapRef: {name: colors}}
        - {secretRef: {name: missing, optional: true}}
        env:
        - {name: CODE, value: "5"}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
        - {name: FROM_CONFIGMAP, valueFrom: {configMapKeyRef: {name: colors, key: color}}}
        - {name: FROM_SECRET, valueFrom: {secretKeyRef: {name: words, key: pass}}}
        - {name: GREETING, value: hello from $(POD_NAME)}
        - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: colors}
data: {color: green}
---
apiVersion: v1
kind: Secret
metadata: {name: words}
stringData: {pass: swordfish}
`

// TestRunPassesSignalsOn checks that the program receives each signal exactly once, even a signal
// that a shell sends to the entire process group.
func TestRunPassesSignalsOn(t *testing.T) {
	s := sharedSandbox(t)
	cmd := exec.Command(binary, s.withDir([]string{"run", "--", operator(t), "--report-signals", "--exit-code=9"})...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r := begin(t, cmd)
	r.says("ready")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(-r.Pid(), signal); err != nil {
			t.Fatal(err)
		}
		waitFor(t, 10*time.Second, func() string {
			if !strings.Contains(r.Output(), "got: "+signal.String()) {
				return fmt.Sprintf("no signal %s:\n%s", signal, r.Output())
			}
			return ""
		})
	}
	if err := r.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(); code != 9 {
		t.Errorf("exit code %d, want 9", code)
	}
	if got := strings.Count(r.Output(), "got: terminated"); got != 1 {
		t.Errorf("it got SIGTERM %d times, want once:\n%s", got, r.Output())
	}
	for script, want := range map[string]int{"exit 3": 3, "kill -KILL $$": 137} {
		if got := s.run(t, "run", "--", "sh", "-c", script); got.code != want || got.stderr != "" {
			t.Errorf("%s: exit code %d, want %d, and standard error %q, want none", script, got.code, want, got.stderr)
		}
	}
}

// TestKilledRunLeavesNothing checks that the program is killed and nothing is left behind if
// `sandbox run` is killed, or if its child process for the cleanup is killed.
func TestKilledRunLeavesNothing(t *testing.T) {
	s := sharedSandbox(t)
	before := hostFiles(t)
	for name, kill := range map[string]func(ran) error{
		"the process of the user":       func(r ran) error { return r.Kill() },
		"the process in the namespaces": func(r ran) error { return syscall.Kill(childOf(t, r.Pid()), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			r := startRun(t, s, "--", operator(t))
			r.says("ready")
			var pid int
			if _, err := fmt.Sscan(r.says("pid"), &pid); err != nil {
				t.Fatal(err)
			}
			program, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = program.Kill() })
			if err := kill(r); err != nil {
				t.Fatal(err)
			}
			if code := r.wait(); code == 0 {
				t.Error("exit code 0 of what was killed")
			}
			waitGone(t, []int{pid})
			wantNothingLeft(t, s.client(t), "default")
			if after := hostFiles(t); after != before {
				t.Errorf("files of the machine changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestRunEndsWithItsPod checks that the program is terminated like a container when its Pod is
// deleted.
func TestRunEndsWithItsPod(t *testing.T) {
	s := sharedSandbox(t)
	r := startRun(t, s, "--", operator(t), "--exit-code=4")
	r.says("ready")
	s.must(t, "kubectl", "delete", "pod", r.says("env POD_NAME"))
	if code := r.wait(); code != 4 {
		t.Errorf("exit code %d, want 4, that of a program that got SIGTERM:\n%s", code, r.Output())
	}
	wantNothingLeft(t, s.client(t), "default")
}

// asUser makes a command run in a user namespace, where the user who runs the tests is the
// unprivileged user 1000.
func asUser(cmd *exec.Cmd) {
	const id = 1000
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: id, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: id, HostID: os.Getgid(), Size: 1}},
	}
}

// TestRunWithoutRoot checks that `sandbox run` works without root by means of a user namespace, and
// that the program keeps the user's ID and gets no additional capabilities.
func TestRunWithoutRoot(t *testing.T) {
	s := sharedSandbox(t)
	cmd := exec.Command(binary, s.withDir([]string{"run", "--", "sh", "-c", `echo "user: $(id -u)"; echo "capabilities: $(awk '/CapEff/ {print $2}' /proc/self/status)"; exec "$0" --once`, operator(t)})...)
	asUser(cmd)
	needsNamespaces(t, cmd.SysProcAttr)
	r := begin(t, cmd)
	if code := r.wait(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, r.Output())
	}
	r.wants(map[string]string{"user": "1000", "capabilities": "0000000000000000", "namespace": "default", "same API server by any way": "true"})
	wantNothingLeft(t, s.client(t), "default")
}

// TestRunFromGo checks that the client package can start `sandbox run`, and that the program is
// stopped at the end of the test.
func TestRunFromGo(t *testing.T) {
	s := sharedSandbox(t)
	p, err := client.Start(s.up.Command(t.Context(), "run", "--", operator(t)))
	if err != nil {
		t.Fatal(err)
	}
	r := ran{p, t}
	r.says("ready")
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	wantNothingLeft(t, s.client(t), "default")
}
