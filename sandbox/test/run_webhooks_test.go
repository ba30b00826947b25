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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookManifest returns a Deployment, its Service, and a webhook behind the Service that
// validates the ConfigMaps in a namespace.
func webhookManifest(port int, namespace string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  replicas: 0
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec:
      serviceAccountName: operator
      containers:
      - name: manager
        image: example.com/operator
        args: [--webhook-port=%[1]d]
        ports: [{name: webhook, containerPort: %[1]d}]
        env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
---
apiVersion: v1
kind: Service
metadata: {name: webhook}
spec:
  selector: {app: operator}
  ports: [{port: 443, targetPort: webhook}]
---
%[2]s`, port, validating(namespace, "first"))
}

func validating(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s-%[2]s}
webhooks:
- name: %[2]s.example.com
  clientConfig: {caBundle: "", service: {namespace: %[1]s, name: webhook, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  objectSelector: {matchLabels: {asks: %[2]s}}
  failurePolicy: Fail
  timeoutSeconds: 1
  sideEffects: None
  admissionReviewVersions: [v1]
- name: other.example.com
  clientConfig: {service: {namespace: %[1]s, name: other}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  objectSelector: {matchLabels: {asks: no-one}}
  sideEffects: None
  admissionReviewVersions: [v1]
`, namespace, name)
}

// setUpWebhooks applies webhookManifest, and deletes its webhook configurations at the end of the
// test.
func setUpWebhooks(t *testing.T, s sandbox, namespace string, port int) {
	t.Helper()
	apply(t, s, namespace, webhookManifest(port, namespace))
	t.Cleanup(func() {
		s.must(t, "kubectl", "delete", "validatingwebhookconfiguration", "--ignore-not-found", namespace+"-first", namespace+"-later")
	})
}

func webhooksIn(t *testing.T, s sandbox, configuration string) string {
	t.Helper()
	return s.must(t, "kubectl", "get", "validatingwebhookconfiguration", configuration, "-o=jsonpath={.webhooks}{.metadata.annotations.sandbox\\.tidekeeper\\.dev/redirected-webhooks}")
}

// wantRefused waits until the operator's webhook with the given name denies a ConfigMap.
func wantRefused(t *testing.T, s sandbox, namespace, asks string) {
	t.Helper()
	waitFor(t, 20*time.Second, func() string {
		_, err := s.client(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "asked-", Labels: map[string]string{"asks": asks}},
		}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "the operator says no") {
			return fmt.Sprintf("the webhook %s: %v, want that the operator refuses", asks, err)
		}
		return ""
	})
}

// TestRunServesWebhooks checks that the API server calls the program for the webhooks of a Service
// that selects its Pod, including webhooks that are created while the program runs. The webhooks
// must be restored afterwards.
func TestRunServesWebhooks(t *testing.T) {
	s := sharedSandbox(t)
	namespace := newNamespace(t, s)
	setUpWebhooks(t, s, namespace, freePort(t))
	before := webhooksIn(t, s, namespace+"-first")
	hostBefore := hostFiles(t)

	r := startRun(t, s, "--from", "deployment/"+namespace+"/operator", "--", operator(t))
	r.says("ready")
	wantRefused(t, s, namespace, "first")
	apply(t, s, namespace, validating(namespace, "later"))
	wantRefused(t, s, namespace, "later")
	if now := webhooksIn(t, s, namespace+"-first"); !strings.Contains(now, `"service":{"name":"other"`) {
		t.Errorf("a webhook of another Service was changed: %s", now)
	}
	_ = r.Signal(syscall.SIGTERM)
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, r.Output())
	}
	if after := webhooksIn(t, s, namespace+"-first"); after != before {
		t.Errorf("the webhooks were\n%s\nand are\n%s", before, after)
	}
	if after := webhooksIn(t, s, namespace+"-later"); strings.Contains(after, "url") {
		t.Errorf("the webhooks that were created later are left as they were changed: %s", after)
	}
	if hostAfter := hostFiles(t); hostAfter != hostBefore {
		t.Errorf("files of the machine changed from\n%s\nto\n%s", hostBefore, hostAfter)
	}
}

// TestKilledRunRestoresWebhooks checks that the webhooks are restored after `sandbox run` is
// killed. If its cleanup process is killed as well, the next `sandbox run` restores them.
func TestKilledRunRestoresWebhooks(t *testing.T) {
	s := sharedSandbox(t)
	namespace := newNamespace(t, s)
	setUpWebhooks(t, s, namespace, freePort(t))
	before := webhooksIn(t, s, namespace+"-first")
	asBefore := func() string {
		if after := webhooksIn(t, s, namespace+"-first"); after != before {
			return fmt.Sprintf("the webhooks were\n%s\nand are\n%s", before, after)
		}
		return ""
	}
	run := func() ran {
		r := startRun(t, s, "--from", "deployment/"+namespace+"/operator", "--", operator(t))
		r.says("ready")
		wantRefused(t, s, namespace, "first")
		return r
	}
	if err := run().Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 20*time.Second, asBefore)
	wantNothingLeft(t, s.client(t), namespace, "operator")

	r := run()
	// The only child of `sandbox run` is its cleanup process.
	if err := syscall.Kill(childOf(t, r.Pid()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(); code != 137 {
		t.Errorf("exit code %d, want 137", code)
	}
	wantNothingLeft(t, s.client(t), namespace, "operator")
	_ = run().Signal(syscall.SIGTERM)
	waitFor(t, 20*time.Second, asBefore)
}

// childOf returns the only child of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	// The kernel lists the children of each thread separately.
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		var child int
		if text, err := os.ReadFile(list); err == nil {
			if _, err := fmt.Sscan(string(text), &child); err == nil {
				return child
			}
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}

// TestRunConverts checks that the program serves a CustomResourceDefinition's conversion webhook
// when --webhooks names the Service.
func TestRunConverts(t *testing.T) {
	s := sharedSandbox(t)
	namespace := newNamespace(t, s)
	group := namespace + ".example.com"
	name := "boats." + group
	version := func(name string, storage bool) string {
		return fmt.Sprintf(`{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object}}}`, name, storage)
	}
	apply(t, s, namespace, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions: [%s, %s]
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: %s, name: webhook, path: /convert}}}
`, name, group, version("v1", true), version("v2", false), namespace))
	t.Cleanup(func() { s.must(t, "kubectl", "delete", "crd", name, "--wait=false") })
	s.must(t, "kubectl", "wait", "crd", name, "--for=condition=Established", longTimeout)
	conversion := func() string {
		return s.must(t, "kubectl", "get", "crd", name, "-o=jsonpath={.spec.conversion.webhook}")
	}
	before := conversion()
	boat := filepath.Join(t.TempDir(), "boat.yaml")
	if err := os.WriteFile(boat, []byte(fmt.Sprintf("{apiVersion: %s/v1, kind: Boat, metadata: {name: tug}}", group)), 0o600); err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(freePort(t))
	r := startRun(t, s, "--service-account", namespace+"/operator", "--webhooks", namespace+"/webhook", "--webhook-port", port,
		"--", operator(t), "--webhook-port", port)
	r.says("ready")
	waitFor(t, 20*time.Second, func() string {
		if r := s.run(t, "kubectl", "-n", namespace, "apply", "-f", boat); r.code != 0 {
			return r.stderr
		}
		r := s.run(t, "kubectl", "-n", namespace, "get", "boats.v2."+group, "tug", "-o=jsonpath={.apiVersion}")
		if r.stdout != group+"/v2" {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
	s.must(t, "kubectl", "-n", namespace, "delete", "-f", boat)
	_ = r.Signal(syscall.SIGTERM)
	r.wait()
	if after := conversion(); after != before {
		t.Errorf("the conversion was\n%s\nand is\n%s", before, after)
	}
}

// TestRunWithoutWebhooks checks that a Service without webhooks, such as a metrics Service, has no
// effect on the program.
func TestRunWithoutWebhooks(t *testing.T) {
	s := sharedSandbox(t)
	namespace := newNamespace(t, s)
	deploymentAndService, _, _ := strings.Cut(webhookManifest(9443, namespace), validating(namespace, "first"))
	apply(t, s, namespace, deploymentAndService)
	dir := t.TempDir()
	r := startRunWith(t, s, []string{"TMPDIR=" + dir}, "--from", "deployment/"+namespace+"/operator", "--", "sh", "-c", "echo written > $TMPDIR/file")
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, r.Output())
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "written\n" {
		t.Errorf("what the program wrote: %q, %v", got, err)
	}
}

// TestRunKeepsFilesBeside checks that the program still sees the host's files next to a directory
// that `sandbox run` creates for it.
func TestRunKeepsFilesBeside(t *testing.T) {
	s := sharedSandbox(t)
	namespace := newNamespace(t, s)
	dir := t.TempDir()
	for _, sub := range []string{"there", "certs-there"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, certs := range []string{"new/certs", "certs-there"} {
		for _, user := range []string{"root", "user"} {
			t.Run(certs+" as "+user, func(t *testing.T) {
				const script = `echo "certificates: $(ls $1 | xargs)"; echo "file: $(cat link)"; echo changed by $2 > there/file; echo "directory: $(pwd)"`
				cmd := exec.Command(binary, s.withDir([]string{"run", "--service-account", namespace + "/operator", "--webhooks", namespace + "/webhook",
					"--webhook-cert-dir", certs, "--", "sh", "-c", script, "sh", certs, user})...)
				cmd.Dir = dir
				if user != "root" {
					asUser(cmd)
				}
				r := begin(t, cmd)
				if code := r.wait(); code != 0 {
					t.Fatalf("exit code %d:\n%s", code, r.Output())
				}
				r.wants(map[string]string{"certificates": "ca.crt tls.crt tls.key", "file": "precious", "directory": dir})
				if got, err := os.ReadFile(filepath.Join(dir, "there", "file")); err != nil || string(got) != "changed by "+user+"\n" {
					t.Errorf("what the program wrote: %q, %v", got, err)
				}
				if got := entries(t, dir); got != "certs-there file link there there/file" {
					t.Errorf("in the directory there are now: %s", got)
				}
				if got := entries(t, filepath.Join(dir, "certs-there")); got != "" {
					t.Errorf("certificates were left on the machine: %s", got)
				}
			})
		}
	}
}
