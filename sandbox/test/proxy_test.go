// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// version is the ConfigMap data key that holds the number of the last write.
const version = "version"

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{version: "1"}}
}

// inNamespace creates a namespace for a test. It returns the namespace's name and a client for its
// ConfigMaps that bypasses the proxy.
func inNamespace(t *testing.T, s sandbox) (string, typedv1.ConfigMapInterface) {
	t.Helper()
	client := s.client(t)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "proxied-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
	})
	return namespace.Name, client.CoreV1().ConfigMaps(namespace.Name)
}

// create creates a ConfigMap with version 1.
func create(t testing.TB, client typedv1.ConfigMapInterface, name string) {
	t.Helper()
	if _, err := client.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func update(t testing.TB, client typedv1.ConfigMapInterface, name, v string) {
	t.Helper()
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, version, v)
	if _, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestProxyPassesOn(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "")
	namespace, _ := inNamespace(t, s)
	for _, protobuf := range []bool{false, true} {
		maps := p.client(t, protobuf).CoreV1().ConfigMaps(namespace)
		create(t, maps, "plain")
		update(t, maps, "plain", "2")
		if got, err := maps.Get(t.Context(), "plain", metav1.GetOptions{}); err != nil || got.Data[version] != "2" {
			t.Errorf("protobuf %t: %v, %v", protobuf, got, err)
		}
		if err := maps.Delete(t.Context(), "plain", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	// The log contains the object's name even if the name is only in the request body.
	line := p.awaitLogged(t, func(l client.LogEntry) bool { return l.Verb == "create" && l.Resource == "configmaps" })
	if line.Name != "plain" || line.Namespace != namespace || line.Status != http.StatusCreated || line.Upstream != http.StatusCreated ||
		line.Bytes == 0 || line.Seconds <= 0 || !strings.Contains(line.UserAgent, "test") || time.Since(line.Time) > time.Hour {
		t.Errorf("logged: %+v", line)
	}
	p.awaitLogged(t, func(l client.LogEntry) bool { return l.Verb == "delete" && l.Name == "plain" && l.Fault == "" })
}

// TestProxyRequests checks that a client that creates an object gets the expected error for each
// kind of fault, and that the object exists afterwards only if the fault lets the write through.
func TestProxyRequests(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "")
	namespace, direct := inNamespace(t, s)
	fails := func(err error) bool { return err != nil && apierrors.ReasonForError(err) == "" }
	isLeft := func(err error) bool { return errors.Is(err, context.Canceled) }
	tests := map[string]struct {
		fault string
		seen  func(error) bool
		// created is set if the object must exist afterwards; hangs is set if the request gets no
		// response before the client cancels it.
		created, hangs bool
	}{
		"conflict":     {"{kind: Error, code: 409}", apierrors.IsAlreadyExists, false, false},
		"invalid":      {"{kind: Error, code: 422}", apierrors.IsInvalid, false, false},
		"too-many":     {"{kind: Error, code: 429}", apierrors.IsTooManyRequests, false, false},
		"internal":     {"{kind: Error, code: 500}", apierrors.IsInternalError, false, false},
		"unavailable":  {"{kind: Error, code: 503}", apierrors.IsServiceUnavailable, false, false},
		"reason":       {"{kind: Error, code: 403, reason: Forbidden, message: not today}", func(err error) bool { return apierrors.IsForbidden(err) && err.Error() == "not today" }, false, false},
		"close":        {"{kind: Close}", fails, false, false},
		"lose-answer":  {"{kind: LoseAnswer}", fails, true, false},
		"made-and-504": {"{kind: LoseAnswer, code: 504}", func(err error) bool { return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) }, true, false},
		"hang":         {"{kind: Hang}", isLeft, false, true},
		"hang-a-while": {"{kind: Hang, for: 50ms}", fails, false, false},
		"hang-answer":  {"{kind: HangAnswer}", isLeft, true, true},
		"delay":        {"{kind: Delay, for: 300ms}", func(err error) bool { return err == nil }, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p.add(t, fmt.Sprintf("- {name: %s, match: {verbs: [create], resources: [configmaps], names: [%s]}, fault: %s}", name, name, tc.fault))
			exists := func() bool {
				_, err := direct.Get(t.Context(), name, metav1.GetOptions{})
				return err == nil
			}
			for i, protobuf := range []bool{false, true} {
				start := time.Now()
				err := askAndLeave(t, func(ctx context.Context) error {
					_, err := p.client(t, protobuf).CoreV1().ConfigMaps(namespace).Create(ctx, configMap(name), metav1.CreateOptions{})
					return err
				}, func() bool { return tc.hangs && p.rule(t, name).Fired > i && exists() == tc.created })
				if !tc.seen(err) {
					t.Errorf("protobuf %t: the client saw %v", protobuf, err)
				}
				if took := time.Since(start); name == "delay" && took < 300*time.Millisecond {
					t.Errorf("it took %s", took)
				}
				if exists() != tc.created {
					t.Errorf("protobuf %t: afterwards, want that it exists: %t", protobuf, tc.created)
				}
				_ = direct.Delete(t.Context(), name, metav1.DeleteOptions{})
			}
			line := p.awaitLogged(t, func(l client.LogEntry) bool { return l.Rule == name })
			if (line.Upstream == http.StatusCreated) != tc.created || line.Fault == "" {
				t.Errorf("logged: %+v", line)
			}
		})
	}
}

// TestProxyHold checks that a held write waits until its rule is removed, and is then executed
// unless its client has already canceled the request.
func TestProxyHold(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "rules: [{name: hold, match: {verbs: [create], resources: [configmaps]}, fault: {kind: Delay}}]")
	namespace, direct := inNamespace(t, s)
	maps := p.client(t, false).CoreV1().ConfigMaps(namespace)

	ctx, leave := context.WithCancel(t.Context())
	left, held := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := maps.Create(ctx, configMap("left"), metav1.CreateOptions{})
		left <- err
	}()
	go func() {
		_, err := maps.Create(t.Context(), configMap("held"), metav1.CreateOptions{})
		held <- err
	}()
	p.awaitFired(t, "hold", 2)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the client that went away saw %v", err)
	}
	p.awaitLogged(t, func(l client.LogEntry) bool { return l.Name == "left" && l.Fault == "Delay" && l.Upstream == 0 })
	if _, err := direct.Get(t.Context(), "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("while it is held: %v", err)
	}
	p.call(t, http.MethodDelete, "/rules/hold", "")
	if err := <-held; err != nil {
		t.Errorf("when the rule is removed, the client saw %v", err)
	}
	if _, err := direct.Get(t.Context(), "left", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the write of the client that went away: %v", err)
	}
}

// TestProxyRetryAfter checks that client-go obeys Retry-After headers and reports no error.
func TestProxyRetryAfter(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, `rules: [{name: busy, match: {verbs: [create]}, count: {times: 1}, fault: {kind: Error, code: 429, retryAfter: 1s}}]`)
	namespace, _ := inNamespace(t, s)
	start := time.Now()
	create(t, p.client(t, false).CoreV1().ConfigMaps(namespace), "patient")
	if took := time.Since(start); took < time.Second {
		t.Errorf("the client retried after %s, with Retry-After: 1s", took)
	}
	p.awaitLogged(t, func(l client.LogEntry) bool { return l.Status == http.StatusTooManyRequests && l.Rule == "busy" })
}

func TestProxyCounts(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, `
rules:
- name: third
  match: {verbs: [write], resources: [configmaps], userAgents: ["!other-client*"]}
  count: {from: 3, times: 1}
  fault: {kind: Error, code: 500}
`)
	namespace, _ := inNamespace(t, s)
	maps := p.client(t, false).CoreV1().ConfigMaps(namespace)
	config := p.config(t)
	config.UserAgent = "other-client/1.0 (test)"
	create(t, clientFor(t, config).CoreV1().ConfigMaps(namespace), "not-counted")
	create(t, maps, "first")
	update(t, maps, "first", "2")
	if err := maps.Delete(t.Context(), "first", metav1.DeleteOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("the third write: %v", err)
	}
	if err := maps.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Errorf("the fourth write: %v", err)
	}
	if text := p.call(t, http.MethodGet, "/rules/third", ""); !strings.Contains(text, `"matched": 4`) || !strings.Contains(text, `"fired": 1`) {
		t.Errorf("counters: %s", text)
	}
}

// TestProxyIdentity checks that clients with the kubeconfig that the proxy writes act as the
// proxy's user, and that all other clients keep their own identity.
func TestProxyIdentity(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "")
	direct := s.client(t)
	token, err := direct.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	withToken := rest.AnonymousClientConfig(p.config(t))
	withToken.BearerToken = token.Status.Token
	for config, want := range map[*rest.Config]string{p.config(t): "sandbox-admin", withToken: "system:serviceaccount:default:default"} {
		review, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || review.Status.UserInfo.Username != want {
			t.Errorf("want %s, got %v, %v", want, review, err)
		}
	}
	_, err = clientFor(t, rest.AnonymousClientConfig(p.config(t))).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), `User "system:anonymous" cannot list`) {
		t.Errorf("an anonymous client: %v", err)
	}
}

// TestProxyStale checks that all reads under a Stale rule return the state as of the first of these
// reads, even for a single object and in both encodings.
func TestProxyStale(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "")
	for _, protobuf := range []bool{false, true} {
		namespace, direct := inNamespace(t, s)
		maps := p.client(t, protobuf).CoreV1().ConfigMaps(namespace)
		create(t, direct, "old")
		p.add(t, "- {name: stale, match: {resources: [configmaps]}, fault: {kind: Stale}}")
		seen := func() string {
			got, err := maps.Get(t.Context(), "old", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			list, err := maps.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			text := got.Name + "=" + got.Data[version] + ":"
			for _, item := range list.Items {
				if !strings.HasPrefix(item.Name, "kube-") {
					text += " " + item.Name + "=" + item.Data[version]
				}
			}
			return text
		}
		if got, want := seen(), "old=1: old=1"; got != want {
			t.Errorf("protobuf %t: at first %q, want %q", protobuf, got, want)
		}
		update(t, direct, "old", "2")
		create(t, direct, "young")
		if got, want := seen(), "old=1: old=1"; got != want {
			t.Errorf("protobuf %t: the old state is %q, want %q", protobuf, got, want)
		}
		if _, err := maps.Get(t.Context(), "young", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("protobuf %t: the object that does not exist yet: %v", protobuf, err)
		}
		p.call(t, http.MethodDelete, "/rules/stale", "")
		if got, want := seen(), "old=2: old=2 young=1"; got != want {
			t.Errorf("protobuf %t: now %q, want %q", protobuf, got, want)
		}
	}
}

// TestProxyStaleMetadata checks that metadata-only reads under a Stale rule return old state.
func TestProxyStaleMetadata(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "rules: [{name: stale, match: {resources: [configmaps]}, fault: {kind: Stale}}]")
	namespace, direct := inNamespace(t, s)
	create(t, direct, "old")
	client, err := metadata.NewForConfig(p.config(t))
	if err != nil {
		t.Fatal(err)
	}
	maps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	first, err := maps.Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	update(t, direct, "old", "2")
	if again, err := maps.Get(t.Context(), "old", metav1.GetOptions{}); err != nil || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("%v, %v; want version %s", again, err, first.ResourceVersion)
	}
}

// TestProxyControl checks that a request that the proxy's control API rejects changes nothing, and
// that the error explains how to correct the request.
func TestProxyControl(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "rules: [{name: first, fault: {kind: Delay, for: 1ms}}]")
	for name, tc := range map[string]struct {
		method, path, body string
		code               int
		want               string
	}{
		"no rules":         {"POST", "/rules", "", 400, "there are no rules"},
		"no such field":    {"POST", "/rules", "rules:\n- match: {verb: [get]}", 400, `line 2: a match has no field "verb"`},
		"no such kind":     {"POST", "/rules", "rules:\n- fault: {kind: Lose}", 400, `line 2: rule "rule-1": fault.kind "Lose"`},
		"name is taken":    {"POST", "/rules", "rules: [{name: second, fault: {kind: Close}}, {name: first, fault: {kind: Close}}]", 409, `named "first" already`},
		"unknown rule":     {"DELETE", "/rules/none", "", 404, `no rule named "none"`},
		"wait for no rule": {"GET", "/rules/none?fired=1", "", 404, `no rule named "none"`},
		"wait too short":   {"GET", "/rules/first?fired=1000&timeout=1ms", "", 408, "not 1000"},
		"not a number":     {"GET", "/rules/first?fired=x", "", 400, "want a number"},
		"freeze no watch":  {"POST", "/freeze", "match: {verbs: [get]}", 400, "Freeze is done only to"},
		"cut no field":     {"POST", "/cut", "watch: nodes", 400, `has no field "watch"`},
		"nothing to cut":   {"POST", "/cut", "", 200, `"cut": 0`},
		"nothing to thaw":  {"POST", "/thaw", "", 200, `"removed": 0`},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := p.ask(t, tc.method, tc.path, tc.body)
			if code != tc.code || !strings.Contains(text, tc.want) || code >= 400 && strings.Count(text, "\n") != 1 {
				t.Errorf("%d %s, want %d ... %s", code, text, tc.code, tc.want)
			}
		})
	}
	if text := p.call(t, http.MethodGet, "/rules", ""); strings.Count(text, `"name"`) != 1 {
		t.Errorf("rules afterwards: %s", text)
	}
}

func TestProxyWrongInput(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	foreign, wrong, out := write("foreign", "precious"), write("wrong", "rules:\n- fault: {kind: Error}\n"), filepath.Join(dir, "out")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no kubeconfig to write": {nil, "--write-kubeconfig is missing"},
		"foreign kubeconfig":     {[]string{"--write-kubeconfig", foreign}, "is not the kubeconfig of a proxy"},
		"no kubeconfig to read":  {[]string{"--write-kubeconfig", out, "--kubeconfig", filepath.Join(dir, "none")}, "none"},
		"foreign to read":        {[]string{"--write-kubeconfig", out, "--kubeconfig", foreign}, "--kubeconfig"},
		"no scenario":            {[]string{"--write-kubeconfig", out, "--scenario", filepath.Join(dir, "none")}, "--scenario"},
		"wrong scenario":         {[]string{"--write-kubeconfig", out, "--scenario", wrong}, `line 2: rule "rule-1": fault.code: Error needs it`},
		"strangers may steer":    {[]string{"--write-kubeconfig", out, "--control", "127.0.0.1:0"}, "want the file of a socket"},
		"too long a path":        {[]string{"--write-kubeconfig", out, "--control", strings.Repeat("x", 108)}, "at most 107 bytes"},
		"listens anywhere":       {[]string{"--write-kubeconfig", out, "--listen", ":0"}, "name the address"},
		"no port":                {[]string{"--write-kubeconfig", out, "--listen", "localhost"}, "want an address"},
		"a program, and no log":  {[]string{"--write-kubeconfig", out, "--", "true"}, "--log is missing"},
		"no program":             {[]string{"--write-kubeconfig", out, "--log", filepath.Join(dir, "log"), "--", filepath.Join(dir, "none")}, "the program: "},
		"an argument":            {[]string{"--write-kubeconfig", out, "true"}, "requires no arguments, got 1"},
		"nothing to crash":       {[]string{"--write-kubeconfig", out, "--scenario", write("crash", "rules: [{fault: {kind: Crash, at: after}}]")}, "Crash needs a program that the proxy has started"},
		"log nowhere":            {[]string{"--write-kubeconfig", out, "--log", filepath.Join(dir, "no", "log")}, "--log"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, s.run(t, append([]string{"proxy"}, tc.args...)...), tc.want) })
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a kubeconfig was written anyway")
	}
}
