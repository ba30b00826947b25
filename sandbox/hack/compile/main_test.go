// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		p     progress
		after time.Duration
		want  string
	}{
		{progress{downloaded: 57}, time.Minute, "compiling Kubernetes: 57 modules downloaded"},
		{progress{compiled: 12}, time.Second, "compiling Kubernetes: 12 packages so far"},
		{progress{compiled: 100, counted: 20, stale: 2748}, time.Minute, "compiling Kubernetes: 100 of 2,768 packages"},
		{progress{compiled: 1384, counted: 20, stale: 2748}, 4 * time.Minute, "compiling Kubernetes: 1,384 of 2,768 packages, about 4 min left"},
		{progress{compiled: 2700, counted: 20, stale: 2748}, 8 * time.Minute, "compiling Kubernetes: 2,700 of 2,768 packages, about 10 s left"},
		{progress{compiled: 2768, counted: 20, stale: 2748}, 8 * time.Minute, "compiling Kubernetes: all of 2,768 packages, now linking"},
		{progress{compiled: 30, counted: 20, stale: 5}, time.Minute, "compiling Kubernetes: all of 30 packages, now linking"},
	} {
		test.p.name, test.p.start = "Kubernetes", start
		if got := test.p.line(start.Add(test.after)); got != test.want {
			t.Errorf("%+v after %s:\ngot  %s\nwant %s", test.p, test.after, got, test.want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for line, hidden := range map[string]bool{
		"k8s.io/api/core/v1":                      true,
		"go: downloading k8s.io/api v0.37.2":      true,
		"# tidekeeper.dev/x":                      false,
		"./main.go:3:1: undefined: x":             false,
		"go: k8s.io/api@v0.0.1: unknown revision": false,
		"": false,
		"vendor/golang.org/x/crypto/cryptobyte/asn1":   true,
		"gopkg.in/natefinch/lumberjack.v2":             true,
		"internal/runtime/atomic":                      true,
		"main.go:3: the package x is not in std (/go)": false,
	} {
		if got := (&progress{}).read(line); got != hidden {
			t.Errorf("%q: hidden: %t, want %t", line, got, hidden)
		}
	}
}

func TestListCommand(t *testing.T) {
	t.Parallel()
	for build, want := range map[string]string{
		"go build -o bin/x ./cmd/x":                                         "go list -deps -f={{.Stale}} ./cmd/x",
		"go build -C kubernetes -modfile=1.34.mod -ldflags=-s -o=bin/x .":   "go list -C kubernetes -deps -f={{.Stale}} -modfile=1.34.mod .",
		"go build -C=k -tags a,b -race -ldflags -s -o bin/ ./a ./b":         "go list -C=k -deps -f={{.Stale}} -tags a,b -race ./a ./b",
		"/usr/local/go/bin/go build -ldflags -X=a.b=c -o bin/x example.com": "/usr/local/go/bin/go list -deps -f={{.Stale}} example.com",
	} {
		if got := strings.Join(listCommand(strings.Fields(build)), " "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", build, got, want)
		}
	}
}

// TestRun checks the result of compiling a valid program and a program with a compile error.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/x\n\ngo 1.26\n")
	write("main.go", "package main\n\nfunc main() {}\n")
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	program := filepath.Join(dir, "x")
	command := []string{"go", "build", "-C", dir, "-o", program, "."}
	if err := run("x", command, out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
	write("main.go", "package main\n\nfunc main() { missing() }\n")
	if err := run("x", command, out); err == nil {
		t.Error("a program with a mistake was built")
	}
	text, err := os.ReadFile(out.Name())
	if err != nil || !strings.Contains(string(text), "undefined: missing") {
		t.Errorf("%v: the output does not name the mistake:\n%s", err, text)
	}
}
