// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// boats is the manifest of the CustomResourceDefinition for the kind Boat.
const boats = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// uids returns the UIDs of the objects that TestSnapshot compares.
func uids(t *testing.T, client kubernetes.Interface, s sandbox) map[string]string {
	t.Helper()
	all := map[string]string{}
	pods, err := client.CoreV1().Pods("dock").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		all["pod "+pod.Name] = string(pod.UID)
	}
	for _, what := range []string{"deployment", "replicaset", "configmap", "secret", "boat"} {
		for _, line := range strings.Fields(s.run(t, "kubectl", "get", what, "-n", "dock", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`).stdout) {
			name, uid, _ := strings.Cut(line, "=")
			all[what+" "+name] = uid
		}
	}
	return all
}

// TestSnapshotWaits checks that a snapshot of a starting sandbox waits until the start is complete,
// so that the snapshot contains the standard objects of a cluster.
func TestSnapshotWaits(t *testing.T) {
	t.Parallel()
	s := sandbox{dir: t.TempDir()}
	takeTurn(t)
	up := exec.Command(binary, "up", "--data-dir", s.dir, "--nodes=1")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = s.run(t, "down"), up.Wait() }()
	waitFor(t, time.Minute, func() string { return s.run(t, "status").stderr })
	s.must(t, "snapshot", "save", filepath.Join(t.TempDir(), "installed"))
	if s.status(t).Times.Ready.Duration == 0 {
		t.Error("it was taken before the sandbox was ready")
	}
}

// TestSnapshot checks that a restore brings back the same objects with the same status, in the same
// sandbox and in a new sandbox, and that the controllers continue from this state.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	s := start(t, "--nodes=3", "--keep-history")
	dir := t.TempDir()
	file := filepath.Join(dir, "installed")
	manifest := filepath.Join(dir, "boats.yaml")
	if err := os.WriteFile(manifest, []byte(boats), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "kubectl", "apply", "-f", manifest)
	s.must(t, "kubectl", "wait", "crd/boats.example.com", "--for=condition=Established", longTimeout)
	s.must(t, "kubectl", "create", "namespace", "dock")
	s.must(t, "kubectl", "create", "deployment", "crew", "-n", "dock", "--image=crew", "--replicas=6")
	s.must(t, "kubectl", "rollout", "status", "deployment/crew", "-n", "dock", longTimeout)
	s.must(t, "kubectl", "create", "configmap", "chart", "-n", "dock", "--from-literal=depth=3")
	if err := os.WriteFile(manifest, []byte("apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: ark, namespace: dock}\nspec: {length: 300}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "kubectl", "apply", "-f", manifest)
	// The controller manager makes this ConfigMap, which the test compares, in any new namespace.
	s.must(t, "kubectl", "wait", "configmap/kube-root-ca.crt", "-n", "dock", "--for=create", longTimeout)
	s.must(t, "status", "--until-quiet=1s")
	cs := s.client(t)
	want := uids(t, cs, s)
	if len(want) < 6+4 {
		t.Fatalf("too little is there: %v", want)
	}
	out := s.must(t, "snapshot", "save", file)
	said := regexp.MustCompile(` has the [0-9]+ objects of revision ([0-9]+)\.`).FindStringSubmatch(out)
	if said == nil {
		t.Fatalf("snapshot said %q", out)
	}

	// Change, create and delete objects and their dependents.
	s.must(t, "kubectl", "delete", "deployment", "crew", "-n", "dock", "--cascade=foreground", "--wait")
	s.must(t, "kubectl", "delete", "crd", "boats.example.com")
	s.must(t, "kubectl", "patch", "configmap", "chart", "-n", "dock", "-p", `{"data":{"depth":"4"}}`)
	s.must(t, "kubectl", "create", "configmap", "later", "-n", "dock")
	s.must(t, "kubectl", "create", "namespace", "later")

	// kubectl --at can still read the revision of the snapshot.
	at := func(args ...string) string {
		t.Helper()
		return s.must(t, append([]string{"kubectl", "--at", said[1]}, args...)...)
	}
	if got := at("get", "configmap/chart", "-n", "dock", "-o", "jsonpath={.kind} {.data.depth}"); got != "ConfigMap 3" {
		t.Errorf("at that revision the chart was %q", got)
	}
	if got := at("get", "pods", "-n", "dock", "--no-headers"); strings.Count(got, "Running") != 6 {
		t.Errorf("at that revision the pods were\n%s", got)
	}
	for _, tc := range []struct{ args, says string }{
		{"get namespace later", `namespaces "later" not found in revision`},
		{"delete configmap chart -n dock", "is past: it can only be read"},
		{"get pods --watch", "cannot be watched"},
	} {
		if r := s.run(t, append([]string{"kubectl", "--at", said[1]}, strings.Fields(tc.args)...)...); r.code != 1 || !strings.Contains(r.stderr, tc.says) {
			t.Errorf("%s: %+v, want %q", tc.args, r, tc.says)
		}
	}

	began := time.Now()
	if out := s.must(t, "snapshot", "restore", file); !strings.Contains(out, "had to be written or removed") {
		t.Errorf("restore said %q", out)
	} else {
		t.Logf("%s in all: %s", time.Since(began).Round(time.Millisecond), out)
	}
	isBack := func(s sandbox, client kubernetes.Interface) {
		t.Helper()
		waitFor(t, 30*time.Second, func() string {
			if got := uids(t, client, s); fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Sprintf("there is\n%v, want\n%v", got, want)
			}
			return ""
		})
		if got := s.must(t, "kubectl", "get", "configmap/chart", "-n", "dock", "-o", "jsonpath={.data.depth}"); got != "3" {
			t.Errorf("the chart says %q, want 3", got)
		}
		if got := s.must(t, "kubectl", "get", "boat/ark", "-n", "dock", "-o", "jsonpath={.spec.length}"); got != "300" {
			t.Errorf("the ark has the length %q, want 300", got)
		}
		if r := s.run(t, "kubectl", "get", "namespace", "later"); r.code == 0 {
			t.Error("what came later is still there")
		}
	}
	isBack(s, cs)
	// The controllers must not mistake the restored objects for new objects or for orphans.
	s.must(t, "status", "--until-quiet=3s")
	isBack(s, cs)
	s.must(t, "kubectl", "scale", "deployment/crew", "-n", "dock", "--replicas=8")
	s.must(t, "kubectl", "rollout", "status", "deployment/crew", "-n", "dock", longTimeout)

	other := start(t, "--nodes=0")
	other.must(t, "snapshot", "restore", file)
	// If objects shared a revision, a client that has to watch again in the midst of it would miss some.
	accounts, err := other.client(t).CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for i := range accounts.Items {
		a := &accounts.Items[i]
		if versions[a.ResourceVersion] != "" {
			t.Errorf("service accounts %s and %s have the same resource version", versions[a.ResourceVersion], a.Name)
		}
		versions[a.ResourceVersion] = a.Name
	}
	isBack(other, other.client(t))
	other.must(t, "kubectl", "scale", "deployment/crew", "-n", "dock", "--replicas=7")
	other.must(t, "kubectl", "rollout", "status", "deployment/crew", "-n", "dock", longTimeout)
}

// TestSnapshotInput checks that "restore" rejects invalid input before it changes anything, and
// does not silently start a component that was not running.
func TestSnapshotInput(t *testing.T) {
	s := sharedSandbox(t)
	text := filepath.Join(t.TempDir(), "text")
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{"snapshot", "save"}, "requires FILE"},
		{[]string{"snapshot", "save", "/missing/file"}, "save the snapshot: "},
		{[]string{"kubectl", "--at", "0", "get", "pods"}, "--at \"0\": want a revision"},
		{[]string{"kubectl", "--at=now", "get", "pods"}, "--at \"now\": want a revision"},
		{[]string{"snapshot", file}, "unknown command"},
		{[]string{"snapshot", "restore", text}, "is not a snapshot, as 'sandbox snapshot save' writes them"},
		{[]string{"snapshot", "restore", "/missing/file"}, "no such file"},
		{[]string{"status", "--until-quiet=0s"}, "--until-quiet 0s: it must be more than 0"},
		{[]string{"status", "--timeout=10s"}, "--timeout without --until-quiet"},
		{[]string{"status", "--until-quiet=10s", "--timeout=10s"}, "--timeout 10s: it must be more than --until-quiet 10s"},
	} {
		wantError(t, s.run(t, tc.args...), tc.says)
	}
	s.must(t, "snapshot", "save", file)
	s.must(t, "component", "pause", "kube-scheduler")
	r := s.run(t, "snapshot", "restore", file)
	s.must(t, "component", "resume", "kube-scheduler")
	wantError(t, r, "kube-scheduler is paused: start or resume it first, with 'sandbox component'")
	if r := command(t, "snapshot", "restore", "--data-dir", t.TempDir(), file); r.code != 1 || !strings.Contains(r.stderr, "no sandbox runs in") {
		t.Errorf("without a sandbox: %+v", r)
	}
}

// TestQuiet checks that `status --until-quiet` waits until clients stop writing, and names the last
// write if they do not stop.
func TestQuiet(t *testing.T) {
	s := sharedSandbox(t)
	cs := s.client(t)
	// Wait until the namespaces of earlier tests are deleted.
	s.must(t, "status", "--until-quiet=3s", "--timeout=5m")
	if _, err := cs.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "restless"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
				_, _ = cs.CoreV1().ConfigMaps("default").Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "restless"}, Data: map[string]string{"n": fmt.Sprint(i)}}, metav1.UpdateOptions{})
			}
		}
	}()
	// The quiet time is long, so that a machine that stalls for some seconds does not look like a
	// quiet cluster.
	r := s.run(t, "status", "--until-quiet=15s", "--timeout=16s")
	close(done)
	<-ended
	wantError(t, r, "it is not quiet, after 16s: the last write was a change of configmaps/default/restless")
	s.must(t, "status", "--until-quiet=1s")
	// The API server renews its identity Lease every ten seconds. This must not count as a write.
	s.must(t, "status", "--until-quiet=12s", longTimeout)
	if err := cs.CoreV1().ConfigMaps("default").Delete(t.Context(), "restless", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
