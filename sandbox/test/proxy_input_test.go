// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProxyControl: a request that the proxy's API refuses changes nothing, and the
// error says what to do.
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
		"strangers may steer":    {[]string{"--write-kubeconfig", out, "--control", "0.0.0.0:0"}, "must be a loopback address"},
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
