// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// releases returns the Kubernetes releases, such as 1.34, whose programs are in the same folder as
// the sandbox binary.
func releases(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(binary), "kubernetes-1.*"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		found = append(found, strings.TrimPrefix(filepath.Base(path), "kubernetes-"))
	}
	return found
}

// TestKubernetesRelease checks that a sandbox can run each additional Kubernetes release that was
// built, and that "up" and the API server report the release's version.
func TestKubernetesRelease(t *testing.T) {
	built := releases(t)
	if len(built) == 0 {
		t.Skip("no other release of Kubernetes is built: make build-kubernetes KUBERNETES=1.34")
	}
	for _, release := range built {
		t.Run(release, func(t *testing.T) {
			s := start(t, "--nodes=2", "--kubernetes="+release)
			if greeting := s.up.Greeting(); !strings.Contains(greeting, "Kubernetes v"+release+".") {
				t.Errorf("up does not say which release it runs:\n%s", greeting)
			}
			info := serverVersion(t, s)
			if got := info.Major + "." + info.Minor; got != release {
				t.Errorf("the API server reports the version %s, want %s", got, release)
			}
			if got := s.must(t, "kubectl", "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}"); strings.TrimSpace(got) != info.GitVersion+" "+info.GitVersion {
				t.Errorf("the nodes report the versions %q, want %s twice", got, info.GitVersion)
			}
			s.must(t, "kubectl", "create", "deployment", "web", "--image=nginx", "--replicas=2")
			s.must(t, "kubectl", "rollout", "status", "deployment", "web", longTimeout)
			// A killed component must restart from the same Kubernetes release.
			s.must(t, "component", "kill", "kube-apiserver")
			s.must(t, "component", "start", "kube-apiserver")
			s.must(t, "kubectl", "wait", "--for=create", "namespace/default", longTimeout)
			if info := serverVersion(t, s); info.Major+"."+info.Minor != release {
				t.Errorf("after a restart, the API server reports the version %s.%s", info.Major, info.Minor)
			}
			wantError(t, s.run(t, "up", "--detach", "--kubernetes="), "was started without --kubernetes=")
			s.must(t, "up", "--detach", "--kubernetes="+release)
			t.Setenv("SANDBOX_KUBERNETES", "1.2")
			wantError(t, s.run(t, "up", "--detach"), "was started without --kubernetes=1.2")
			t.Setenv("SANDBOX_KUBERNETES", release)
			s.must(t, "up", "--detach")
			wantError(t, command(t, "up", "--data-dir", t.TempDir(), "--kubernetes="+release, "--emulated-version="+release), "leave it or --kubernetes out")
			wantError(t, command(t, "up", "--data-dir", t.TempDir(), "--kubernetes="+release, "--real-nodes=1"), "leave --real-nodes or --kubernetes out")
		})
	}
}

// TestKubernetesReleaseCompiledIn checks that the compiled-in Kubernetes release needs no separate
// program, and can emulate older releases.
func TestKubernetesReleaseCompiledIn(t *testing.T) {
	version := command(t, "--version").stdout
	release := regexp.MustCompile(`Kubernetes v([0-9]+\.[0-9]+)\.`).FindStringSubmatch(version)
	if release == nil {
		t.Fatalf("--version prints %q", version)
	}
	if slices.Contains(releases(t), release[1]) {
		t.Skipf("Kubernetes %s is also a program of its own here", release[1])
	}
	s := start(t, "--nodes=0", "--kubernetes="+release[1])
	if info := serverVersion(t, s); info.Major+"."+info.Minor != release[1] {
		t.Errorf("the API server reports the version %s.%s, want %s", info.Major, info.Minor, release[1])
	}
}

func TestKubernetesReleaseThatThereIsNot(t *testing.T) {
	empty := t.TempDir()
	for release, want := range map[string]string{
		"1.2":     "kubernetes-1.2: build it with 'make build-kubernetes KUBERNETES=1.2'",
		"latest":  `--kubernetes "latest": want a version like 1.34`,
		"v1.34.4": "want a version like 1.34",
		"../1.34": "want a version like 1.34",
	} {
		for _, detach := range []string{"--detach=true", "--detach=false"} {
			wantError(t, command(t, "up", "--data-dir", empty, detach, "--kubernetes", release), want)
		}
	}
	t.Setenv("SANDBOX_KUBERNETES", "latest")
	wantError(t, command(t, "up", "--data-dir", empty), `--kubernetes "latest": want a version like 1.34`)
	if got := entries(t, empty); got != "" {
		t.Errorf("left in the data directory: %s", got)
	}
}
