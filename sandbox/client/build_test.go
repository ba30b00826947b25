// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkout writes a module with the sandbox module's path whose main package is the given program.
func checkout(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module " + sandboxModule + "\n\ngo 1.24\n\nrequire (\nk8s.io/kubernetes v1.99.3\nk8s.io/component-base v0.99.3\n)\n\n" +
			"replace k8s.io/kubernetes => ./kubernetes\n\nreplace k8s.io/component-base => ./base\n",
		"cmd/sandbox/main.go":     program,
		"kubernetes/go.mod":       "module k8s.io/kubernetes\n",
		"base/go.mod":             "module k8s.io/component-base\n",
		"base/version/version.go": "package version\n\nvar gitVersion string\n\nfunc Get() string { return gitVersion }\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const prints = "package main\n\nimport \"k8s.io/component-base/version\"\n\nfunc main() { print(\"TEXT of \", version.Get()) }\n"

// TestBuildFromACheckout checks that the client builds the sandbox program from a checkout and sets
// its version if neither $SANDBOX_BIN nor the PATH provides a program. It also checks that the
// client rebuilds the program after a change of the source.
func TestBuildFromACheckout(t *testing.T) {
	source, cache := checkout(t, strings.Replace(prints, "TEXT", "one", 1)), t.TempDir()
	t.Setenv(BinaryVariable, "")
	t.Setenv(SourceVariable, source)
	t.Setenv("XDG_CACHE_HOME", cache)
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	// Keep Go's build cache, although the test changes the user's cache directory.
	t.Setenv("GOCACHE", goEnv(t, "GOCACHE"))
	t.Setenv("PATH", filepath.Dir(compiler))
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(source, "cmd/sandbox/main.go"), []byte(strings.Replace(prints, "TEXT", text, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := Options{}.binary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(path, cache) {
			t.Errorf("it was built to %s, and not in the cache", path)
		}
		if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != text+" of v1.99.3" {
			t.Errorf("it prints %q, %v", out, err)
		}
	}
	t.Setenv(BuildVariable, "no")
	if path, err := (Options{}).binary(t.Context()); err == nil || !strings.Contains(err.Error(), "SANDBOX_BUILD=no") {
		t.Errorf("it was not to be built: %s, %v", path, err)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestBuildThatFails checks that a failed build is reported in a single line.
func TestBuildThatFails(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GONOSUMDB", "*")
	for _, tc := range []struct {
		name string
		b    builder
		says string
	}{
		{"nothing is known", builder{}, "name a program by SANDBOX_BIN, or the folder sandbox of a checkout by SANDBOX_SOURCE"},
		{"no checkout", builder{source: "/nowhere"}, "build the sandbox from /nowhere: chdir /nowhere: no such file or directory"},
		{"a checkout that does not compile", builder{source: checkout(t, "package main\n\nfunc main() { none() }\n")}, "undefined: none"},
		{"a module that cannot be downloaded", builder{version: "v0.1.2"}, "download the sandbox (or name a program by SANDBOX_BIN, or a checkout by SANDBOX_SOURCE): "},
	} {
		var progress bytes.Buffer
		tc.b.cache, tc.b.progress = t.TempDir(), &progress
		path, err := tc.b.build(t.Context())
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, %v", tc.name, path, err)
		}
	}
}

// TestBuildOnce checks that a version that is already in the cache is not built again.
func TestBuildOnce(t *testing.T) {
	b := builder{cache: t.TempDir(), version: "v0.1.2", progress: &bytes.Buffer{}}
	program := filepath.Join(b.cache, b.version, "sandbox")
	if err := os.MkdirAll(filepath.Dir(program), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := b.build(t.Context()); err != nil || path != program {
		t.Errorf("%q, %v", path, err)
	}
}
