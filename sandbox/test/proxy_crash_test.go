// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestProxyCrash checks that the proxy can crash the program that it runs before a write is sent,
// or after the write is done but before the response is delivered, and that the proxy restarts the
// program.
func TestProxyCrash(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	for at, created := range map[string]int{"before": 1, "after": 2} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			scenario := filepath.Join(dir, "crash.yaml")
			if err := os.WriteFile(scenario, fmt.Appendf(nil, "rules: [{match: {verbs: [create], resources: [configmaps]}, count: {times: 1}, fault: {kind: Crash, at: %s}}]", at), 0o600); err != nil {
				t.Fatal(err)
			}
			// Each process creates an object with its PID in the name, and exits with code 0 once
			// it has received the response.
			kubectl := filepath.Join(dir, "kubectl")
			if err := os.Symlink(binary, kubectl); err != nil {
				t.Fatal(err)
			}
			script := fmt.Sprintf("echo begun >> %s/begun; exec %s create configmap crash-%s-$$", dir, kubectl, at)
			r := s.run(t, "proxy", "--write-kubeconfig", filepath.Join(dir, "proxied"), "--scenario", scenario, "--log", filepath.Join(dir, "log"), "--", "sh", "-c", script)
			if r.code != 0 {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if begun, err := os.ReadFile(filepath.Join(dir, "begun")); err != nil || strings.Count(string(begun), "begun") != 2 {
				t.Errorf("it was started %d times (%v), want twice", strings.Count(string(begun), "begun"), err)
			}
			maps, err := s.client(t).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range maps.Items {
				if strings.HasPrefix(maps.Items[i].Name, "crash-"+at+"-") {
					n++
				}
			}
			if n != created {
				t.Errorf("%d objects were made, want %d", n, created)
			}
		})
	}
}

// TestProxyUnfired checks that a terminating proxy reports the rules that never injected a fault.
func TestProxyUnfired(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	dir := t.TempDir()
	scenario := filepath.Join(dir, "rules.yaml")
	const rules = `rules:
- {name: works, match: {verbs: [get], resources: [namespaces]}, fault: {kind: Delay, for: 1ms}}
- {name: mistyped, match: {names: [defaults]}, fault: {kind: Close}}
- {name: too-late, match: {verbs: [get], resources: [namespaces]}, count: {from: 50}, fault: {kind: Close}}
`
	if err := os.WriteFile(scenario, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(dir, "kubectl")
	if err := os.Symlink(binary, kubectl); err != nil {
		t.Fatal(err)
	}
	r := s.run(t, "proxy", "--write-kubeconfig", filepath.Join(dir, "proxied"), "--scenario", scenario, "--log", filepath.Join(dir, "log"), "--", kubectl, "get", "namespace", "default")
	var warnings []string
	for line := range strings.Lines(r.stderr) {
		if text, ok := strings.CutPrefix(line, "warning: "); ok {
			warnings = append(warnings, strings.TrimSpace(text))
		}
	}
	want := []string{`rule "mistyped" matched nothing`, `rule "too-late" matched 1 and had no effect: see its count, and the rules before it`}
	if r.code != 0 || !slices.Equal(warnings, want) {
		t.Errorf("exit code %d, warnings %q, want %q\n%s", r.code, warnings, want, r.stderr)
	}
}
