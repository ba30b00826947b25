// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiversion "k8s.io/apimachinery/pkg/version"
)

// minorBefore returns the minor version, such as 1.34, that is the given number of releases older
// than the compiled-in Kubernetes release.
func minorBefore(t *testing.T, s sandbox, releases int) string {
	t.Helper()
	info := serverVersion(t, s)
	var minor int
	if _, err := fmt.Sscan(info.Minor, &minor); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s.%d", info.Major, minor-releases)
}

func serverVersion(t *testing.T, s sandbox) apiversion.Info {
	t.Helper()
	var info apiversion.Info
	if err := json.Unmarshal([]byte(s.must(t, "kubectl", "get", "--raw", "/version")), &info); err != nil {
		t.Fatal(err)
	}
	return info
}

// TestEmulatedVersion checks that a sandbox that emulates an older release serves only the APIs of
// that release, and that all components work with them.
func TestEmulatedVersion(t *testing.T) {
	latest := sharedSandbox(t)
	oldest := minorBefore(t, latest, 3)
	s := start(t, "--nodes=1", "--emulated-version="+oldest)
	if greeting := s.up.Greeting(); !strings.Contains(greeting, " as "+oldest+" is ready") {
		t.Errorf("up does not say which version it emulates:\n%s", greeting)
	}
	info := serverVersion(t, s)
	if got := info.EmulationMajor + "." + info.EmulationMinor; got != oldest {
		t.Errorf("the API server reports the version %s, want %s", got, oldest)
	}
	// Kubernetes 1.35 made the storage version migration API stable.
	if apis := latest.must(t, "kubectl", "api-versions"); !strings.Contains(apis, "storagemigration.k8s.io/v1\n") {
		t.Fatalf("this release has no storagemigration.k8s.io/v1:\n%s", apis)
	}
	if apis := s.must(t, "kubectl", "api-versions"); strings.Contains(apis, "storagemigration.k8s.io/v1\n") {
		t.Errorf("%s has APIs of a later release:\n%s", oldest, apis)
	}
	s.must(t, "kubectl", "create", "deployment", "web", "--image=nginx", "--replicas=2")
	s.must(t, "kubectl", "rollout", "status", "deployment", "web", longTimeout)

	wantError(t, s.run(t, "up", "--detach", "--emulated-version="+minorBefore(t, latest, 1)), "was started without --emulated-version=")
	s.must(t, "up", "--detach", "--emulated-version="+oldest)
}

func TestEmulatedVersionThatThereIsNot(t *testing.T) {
	s := sharedSandbox(t)
	empty := t.TempDir()
	for text, want := range map[string]string{
		minorBefore(t, s, 4):  "emulation version " + minorBefore(t, s, 4) + " is not between [" + minorBefore(t, s, 3) + ", " + minorBefore(t, s, 0),
		minorBefore(t, s, -1): "is not between",
		"latest":              `--emulated-version "latest": want a version like 1.34`,
		"v1.35.2":             "want a version like 1.34",
	} {
		for _, detach := range []string{"--detach=true", "--detach=false"} {
			wantError(t, command(t, "up", "--data-dir", empty, detach, "--emulated-version", text), want)
		}
	}
	if got := entries(t, empty); got != "" {
		t.Errorf("left in the data directory: %s", got)
	}
}
