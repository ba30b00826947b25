// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// operatorBinary builds the test operator once, and returns its path.
var operatorBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(testDir, "operator")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "./operator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	return path, nil
})

// operator returns the path of the test operator. It skips the test on a machine on which `sandbox
// run` cannot work.
func operator(t *testing.T) string {
	t.Helper()
	needsRun(t)
	path, err := operatorBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needsRun skips the test on a machine that does not permit Linux namespaces, where `sandbox run`
// can only report an error.
func needsRun(t *testing.T) {
	t.Helper()
	const own = syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS
	if startIn(&syscall.SysProcAttr{Cloneflags: own}) != nil {
		needsNamespaces(t, &syscall.SysProcAttr{
			Cloneflags:  own | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		})
	}
}

// needsNamespaces skips the test if the machine does not permit the Linux namespaces that the given
// process attributes request.
func needsNamespaces(t *testing.T, attributes *syscall.SysProcAttr) {
	t.Helper()
	if err := startIn(attributes); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("SKIPPED: this machine does not permit the namespaces that a program in the cluster needs: %v", err)
	}
}

func startIn(attributes *syscall.SysProcAttr) error {
	cmd := exec.Command("true")
	cmd.SysProcAttr = attributes
	return cmd.Run()
}

// ran is a running `sandbox run` process.
type ran struct {
	*client.Process
	t *testing.T
}

// startRun starts `sandbox run` with the given arguments, and stops it at the end of the test.
func startRun(t *testing.T, s sandbox, args ...string) ran {
	t.Helper()
	return startRunWith(t, s, nil, args...)
}

// startRunWith is like startRun, but adds environment variables.
func startRunWith(t *testing.T, s sandbox, environment []string, args ...string) ran {
	t.Helper()
	cmd := exec.Command(binary, s.withDir(append([]string{"run"}, args...))...)
	cmd.Env = append(os.Environ(), environment...)
	return begin(t, cmd)
}

func begin(t *testing.T, cmd *exec.Cmd) ran {
	t.Helper()
	// Limit the wait: a program that outlives `sandbox run` would hold its output open and block
	// Wait.
	cmd.WaitDelay = 10 * time.Second
	p, err := client.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	r := ran{p, t}
	t.Cleanup(func() {
		if p.Running() {
			_ = p.Signal(syscall.SIGTERM)
		}
		r.wait()
	})
	return r
}

// says waits until the program has printed a line that begins with the given key, and returns the
// rest of the line.
func (r ran) says(key string) string {
	r.t.Helper()
	var value string
	waitFor(r.t, 30*time.Second, func() string {
		for line := range strings.Lines(r.Output()) {
			if rest, ok := strings.CutPrefix(line, key+": "); ok && strings.HasSuffix(line, "\n") {
				value = strings.TrimSuffix(rest, "\n")
				return ""
			}
		}
		if !r.Running() {
			r.t.Fatalf("it has ended without a line %q:\n%s", key, r.Output())
		}
		return fmt.Sprintf("no line %q:\n%s", key, r.Output())
	})
	return value
}

// wants fails the test unless the program prints each given key with its value.
func (r ran) wants(lines map[string]string) {
	r.t.Helper()
	for key, want := range lines {
		if got := r.says(key); got != want {
			r.t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// wait waits until `sandbox run` has exited and returns its exit code.
func (r ran) wait() int {
	r.t.Helper()
	select {
	case <-r.Done():
	case <-time.After(patience):
		_ = r.Kill()
		r.t.Errorf("it did not end:\n%s", r.Output())
	}
	code, _ := r.Wait(r.t.Context())
	return code
}

// wantNothingLeft waits until everything that `sandbox run` created in a namespace is deleted: no
// Pod without a controller may remain, and no ServiceAccount other than "default" and the given
// accounts.
func wantNothingLeft(t *testing.T, c kubernetes.Interface, namespace string, accounts ...string) {
	t.Helper()
	waitFor(t, 20*time.Second, func() string {
		pods, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, p := range pods.Items {
			if metav1.GetControllerOf(&p) == nil {
				return "the Pod " + p.Name + " is left"
			}
		}
		list, err := c.CoreV1().ServiceAccounts(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, a := range list.Items {
			if a.Name != "default" && !slices.Contains(accounts, a.Name) {
				return "the ServiceAccount " + a.Name + " is left"
			}
		}
		return ""
	})
}

// controlled counts the pods in a namespace that have a controller and are not being deleted.
func controlled(t *testing.T, s sandbox, namespace string) int {
	t.Helper()
	pods, err := s.client(t).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, p := range pods.Items {
		if metav1.GetControllerOf(&p) != nil && p.DeletionTimestamp == nil {
			count++
		}
	}
	return count
}

// hostFiles lists the host's files and mounts at the paths where `sandbox run` shows other files to
// its program. It omits all other paths, because unrelated programs may change files there during
// the test.
func hostFiles(t *testing.T) string {
	t.Helper()
	var all []string
	certificates := filepath.Join(os.TempDir(), "k8s-webhook-server")
	for _, pattern := range []string{"/run/secrets*", "/run/secrets/*", "/run/secrets/*/*", certificates + "*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		const target = 1
		at := strings.Fields(line)[target]
		if slices.Contains([]string{"/run", "/var/run", os.TempDir()}, at) || strings.HasPrefix(at, "/run/secrets") || strings.HasPrefix(at, "/var/run/secrets") || strings.HasPrefix(at, certificates) {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}

// forbidden returns the error message with which the API server denies a ServiceAccount's request.
func forbidden(account, verb, resource, group, namespace string) string {
	return fmt.Sprintf(`%s is forbidden: User "system:serviceaccount:%s:%s" cannot %s resource %q in API group %q in the namespace %q`,
		resource, namespace, account, verb, resource, group, namespace)
}

// newNamespace creates a namespace for a test. Its ServiceAccount "operator" may list and create
// ConfigMaps and Leases in the namespace.
func newNamespace(t *testing.T, s sandbox) string {
	t.Helper()
	name := "run-" + fmt.Sprint(time.Now().UnixNano())
	s.must(t, "kubectl", "create", "namespace", name)
	t.Cleanup(func() { s.must(t, "kubectl", "delete", "namespace", name, "--wait=false") })
	for _, args := range []string{
		"create serviceaccount operator",
		"create role operator --verb=list,create --resource=configmaps,leases.coordination.k8s.io",
		"create rolebinding operator --role=operator --serviceaccount=" + name + ":operator",
	} {
		s.must(t, append([]string{"kubectl", "-n", name}, strings.Fields(args)...)...)
	}
	// The API server learns of new roles by watches, too, and a program asks only once.
	for _, resource := range []string{"configmaps", "leases.coordination.k8s.io"} {
		for _, verb := range []string{"list", "create"} {
			waitMay(t, s, name, "operator", verb, resource, "--namespace="+name)
		}
	}
	return name
}

// waitMay waits until the API server allows a request to a ServiceAccount. The arguments are those of
// "kubectl auth can-i".
func waitMay(t *testing.T, s sandbox, namespace, account string, args ...string) {
	t.Helper()
	waitFor(t, 20*time.Second, func() string {
		answer := s.run(t, append([]string{"kubectl", "auth", "can-i", "--as=system:serviceaccount:" + namespace + ":" + account}, args...)...)
		if strings.TrimSpace(answer.stdout) != "yes" {
			return fmt.Sprintf("the right of %s/%s to %s: %s%s", namespace, account, strings.Join(args, " "), answer.stdout, answer.stderr)
		}
		return ""
	})
}

// apply applies a manifest in a namespace and returns kubectl's output.
func apply(t *testing.T, s sandbox, namespace, manifest string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "kubectl", "-n", namespace, "apply", "-f", file)
	return file
}

// freePort returns a free port, which stays reserved until the end of the test.
func freePort(t *testing.T) int {
	t.Helper()
	address, release, err := client.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func podCondition(p *corev1.Pod, name corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == name {
			return c.Status
		}
	}
	return ""
}
