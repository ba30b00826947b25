// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// containerOf returns the runtime's container ID for a pod with a single container.
func containerOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	if len(pod.Status.ContainerStatuses) != 1 {
		t.Fatalf("%s has %d containers, want one", pod.Name, len(pod.Status.ContainerStatuses))
	}
	id, ok := strings.CutPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	if !ok {
		t.Fatalf("the container of %s is %q", pod.Name, pod.Status.ContainerStatuses[0].ContainerID)
	}
	return id
}

// processIn returns the only process in a pod's container.
func processIn(t *testing.T, pod *corev1.Pod) process {
	t.Helper()
	id := containerOf(t, pod)
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for _, file := range files {
		if cgroups, _ := os.ReadFile(file); strings.Contains(string(cgroups), id) {
			var p process
			_, _ = fmt.Sscanf(file, "/proc/%d/", &p.pid)
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			p.program, _, _ = strings.Cut(string(cmdline), "\x00")
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("in the container of %s run %v, want one process", pod.Name, found)
	}
	return found[0]
}

// statusOf parses the content of /proc/PID/status into a map.
func statusOf(text string) map[string]string {
	status := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			status[name] = strings.TrimSpace(value)
		}
	}
	return status
}

// rootIsReadOnly reports whether a process's root file system is mounted read-only.
func (p process) rootIsReadOnly(t *testing.T) bool {
	t.Helper()
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[4] == "/" {
			return strings.HasPrefix(fields[5]+",", "ro,")
		}
	}
	t.Fatalf("%s has no root:\n%s", p.program, mounts)
	return false
}

// filters reports whether runc was built with seccomp, which filters system calls.
func filters(t *testing.T) bool {
	t.Helper()
	runc, err := framework.Binary("NODE_RUNC_BIN", "node/runc")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), runc, "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Contains(string(out), "libseccomp")
}

// confined checks that the kernel enforces the security context of the managers' pods.
func (n *node) confined(t *testing.T) {
	pods, err := n.managers(t)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Uid": "65532", "Gid": "65532", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1"}
	if filters(t) {
		want["Seccomp"] = "2"
	}
	for _, pod := range pods {
		p := processIn(t, &pod)
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			t.Fatal(err)
		}
		status := statusOf(string(text))
		for name, value := range want {
			if got, _, _ := strings.Cut(status[name], "\t"); got != value {
				t.Errorf("%s of %s: %s is %q, want %s", p.program, pod.Name, name, got, value)
			}
		}
		if cgroups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid)); err != nil || !strings.Contains(string(cgroups), cgroupOf(n.Dir)) {
			t.Errorf("%s is not in the cgroup of the sandbox: %s, %v", pod.Name, cgroups, err)
		}
		if p.program != "/tidekeeper" || !p.rootIsReadOnly(t) {
			t.Errorf("%s runs %s, and its root is read-only: %t", pod.Name, p.program, p.rootIsReadOnly(t))
		}
	}
}
