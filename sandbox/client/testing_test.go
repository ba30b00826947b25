// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// broken is a TB that records failures instead of failing the test. Its Fatalf panics to leave the
// test function, where testing.T would end the goroutine.
type broken struct {
	*testing.T

	failures []string
}

func (b *broken) Helper() {}

func (b *broken) Errorf(format string, args ...any) {
	b.failures = append(b.failures, fmt.Sprintf(format, args...))
}

func (b *broken) Fatalf(format string, args ...any) {
	b.Errorf(format, args...)
	panic(b)
}

// fails runs the given test and returns the failure message that it recorded.
func fails(t *testing.T, test func(TB)) (failure string) {
	t.Helper()
	b := &broken{T: t}
	defer func() {
		if p := recover(); p != nil && p != any(b) {
			panic(p)
		}
		failure = strings.Join(b.failures, "\n")
	}()
	test(b)
	return ""
}

// fake writes a fake sandbox program that only records its arguments in a file, and fails if an
// argument contains "nonsense".
func fake(t *testing.T) (binary string, called func() []string) {
	t.Helper()
	dir := t.TempDir()
	binary, notes := filepath.Join(dir, "sandbox"), filepath.Join(dir, "notes")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s\ncase \"$*\" in *nonsense*) echo no such thing >&2; exit 1;; esac\n", notes)
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return binary, func() []string {
		text, err := os.ReadFile(notes)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"":          {},
		"--nodes=0": {Nodes: NoNodes},
		"--nodes=3 --real-nodes=1 --pod-completed-after=0s --pod-ready-after=2s --fresh --pod-events=false --audit --keep-history --kubernetes=1.35 --emulated-version=1.34 --kubeconfig=/k --nodes=4": {
			Nodes: 3, RealNodes: 1, Delays: map[Delay]time.Duration{ReadyAfter: 2 * time.Second, CompletedAfter: 0}, Fresh: true, NoPodEvents: true,
			Audit: true, KeepHistory: true, Kubernetes: "1.35", EmulatedVersion: "1.34", Kubeconfig: "/k", Args: []string{"--nodes=4"},
		},
	} {
		if got := strings.Join(o.args(), " "); got != want {
			t.Errorf("%+v:\n%s, want\n%s", o, got, want)
		}
	}
}

// TestShared checks that all tests of a process share one sandbox, including parallel tests, and
// that a test's namespaces are deleted after the test.
func TestShared(t *testing.T) {
	binary, called := fake(t)
	o := Options{Binary: binary, Dir: t.TempDir()}
	t.Cleanup(func() { shared.sandbox, shared.err, shared.options = nil, nil, Options{} })
	var names [2]string
	t.Run("tests", func(t *testing.T) {
		for i := range names {
			t.Run("of/Many words…", func(t *testing.T) {
				t.Parallel()
				names[i] = Shared(t, o).Namespace(t)
			})
		}
	})
	calls := called()
	ups := slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return !strings.HasPrefix(call, "up ") })
	if len(ups) != 1 {
		t.Errorf("it was started %d times:\n%s", len(ups), strings.Join(calls, "\n"))
	}
	for _, name := range names {
		deleted := fmt.Sprintf("kubectl --data-dir %s delete namespace %s --wait=false --ignore-not-found", o.Dir, name)
		if !strings.HasPrefix(name, "testshared-tests-of-many-words-") || !slices.Contains(calls, deleted) {
			t.Errorf("%q is not deleted:\n%s", name, strings.Join(calls, "\n"))
		}
	}
	if names[0] == names[1] {
		t.Errorf("both are in %q", names[0])
	}
	other := o
	other.Nodes = 7
	if got := fails(t, func(t TB) { Shared(t, other) }); !strings.Contains(got, "with other options") {
		t.Errorf("with other options: %q", got)
	}
}

// TestNew checks that New stops its sandbox at the end of the test, and that the failure message of
// a failed start contains the command's standard error.
func TestNew(t *testing.T) {
	t.Parallel()
	binary, called := fake(t)
	o := Options{Binary: binary, Dir: t.TempDir()}
	t.Run("a test", func(t *testing.T) { New(t, o) })
	if calls := called(); calls[len(calls)-1] != "down --data-dir "+o.Dir {
		t.Errorf("it was not stopped: %s", calls)
	}
	o.Args = []string{"--nonsense"}
	if got := fails(t, func(t TB) { New(t, o) }); !strings.Contains(got, "no such thing") {
		t.Errorf("the failure is %q", got)
	}
}

// TestRestoreAfterInParallel checks that RestoreAfter fails in a parallel test.
func TestRestoreAfterInParallel(t *testing.T) {
	t.Parallel()
	binary, _ := fake(t)
	defer func() {
		if recover() == nil {
			t.Error("it is not refused")
		}
	}()
	(&Sandbox{binary: binary}).RestoreAfter(t)
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	binary, _ := fake(t)
	s := &Sandbox{binary: binary}
	for says, i := range map[string]Install{
		"no such file":                 {Paths: []string{"/missing"}},
		"set its apiVersion and kind":  {Objects: []any{map[string]any{"kind": "Namespace"}}},
		"install a chan int: json: un": {Objects: []any{make(chan int)}},
	} {
		if err := s.install(t.Context(), i); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

const tides = `
apiVersion: v1
kind: List
items:
- apiVersion: example.com/v1
  kind: Tide
  metadata: {name: first}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: tides.example.com}
  spec:
    group: example.com
    scope: Cluster
    names: {kind: Tide, plural: tides, singular: tide, listKind: TideList}
    versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// guard returns a ValidatingWebhookConfiguration in the form that controller-gen generates.
func guard() map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "guard"},
		"webhooks": []any{map[string]any{
			"name": "guard.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail",
			"clientConfig": map[string]any{"service": map[string]any{"name": "webhook-service", "namespace": "system", "path": "/guard"}},
			"rules":        []any{map[string]any{"apiGroups": []any{"example.com"}, "apiVersions": []any{"v1"}, "operations": []any{"DELETE"}, "resources": []any{"tides"}}},
		}},
	}
}

// serveGuard serves a webhook that denies every request, at the address that the sandbox's API
// server calls.
func serveGuard(t *testing.T, w *Webhooks) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/guard", func(out http.ResponseWriter, in *http.Request) {
		var review map[string]any
		_ = json.NewDecoder(in.Body).Decode(&review)
		_ = json.NewEncoder(out).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{"uid": at[string](review, "request", "uid"), "allowed": false, "status": map[string]any{"message": "the tide stays"}},
		})
	})
	certificate, err := tls.LoadX509KeyPair(filepath.Join(w.CertDir, "tls.crt"), filepath.Join(w.CertDir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(w.Host, fmt.Sprint(w.Port)), &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
}

// TestInASandbox checks that Up returns only once the API server serves the installed kinds and
// calls the installed webhooks, and that RestoreAfter undoes a test's changes.
func TestInASandbox(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tides.yaml")
	if err := os.WriteFile(file, []byte(tides), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(t, Options{Nodes: NoNodes, Install: Install{Paths: []string{file}, Objects: []any{guard()}, LocalWebhooks: true}})
	serveGuard(t, s.Webhooks)
	t.Run("a test that changes what others use", func(t *testing.T) {
		s.RestoreAfter(t)
		if _, err := s.Kubectl(t.Context(), "", "label", "tide", "first", "high=yes"); err != nil {
			t.Error(err)
		}
		if err := Wait(t.Context(), time.Minute, "the webhook refuses", func() error {
			_, err := s.Kubectl(t.Context(), "", "delete", "tide", "first", "--dry-run=server")
			if err == nil || !strings.Contains(err.Error(), "the tide stays") {
				return fmt.Errorf("deleted: %w", err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if _, err := s.Kubectl(t.Context(), "", "get", "--namespace", s.Namespace(t), "configmaps"); err != nil {
			t.Error(err)
		}
	})
	labels, err := s.Kubectl(t.Context(), "", "get", "tide", "first", "--output=jsonpath={.metadata.labels}{.metadata.annotations}")
	if err != nil || labels != "" {
		t.Errorf("after the test it has %q, %v", labels, err)
	}
	alice, err := s.UserKubeconfig(t.Context(), "alice", "sailors")
	if err != nil || !strings.Contains(string(alice), "alice") {
		t.Errorf("the kubeconfig of a user: %v\n%s", err, alice)
	}
}
