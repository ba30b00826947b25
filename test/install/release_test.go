// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{framework.Root()}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReleaseIsPinned checks that the release and nightly workflows pin actions to commits and
// images to digests, and use the same Go version everywhere.
func TestReleaseIsPinned(t *testing.T) {
	workflow := read(t, ".github", "workflows", "release.yaml") + read(t, ".github", "workflows", "nightly.yaml") + read(t, ".github", "workflows", "release-sandbox.yaml")
	uses := regexp.MustCompile(`(?m)^\s*-? *uses: .*$`).FindAllString(workflow, -1)
	if len(uses) < 6 {
		t.Errorf("only %d actions: %q", len(uses), uses)
	}
	for _, use := range uses {
		if !regexp.MustCompile(`uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(use) {
			t.Errorf("not pinned to a commit with the tag as a comment: %s", use)
		}
	}
	dockerfile := read(t, "Dockerfile")
	var version string
	for _, from := range regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(dockerfile, -1) {
		if strings.HasSuffix(from, " scratch") {
			continue
		}
		parts := regexp.MustCompile(` golang:([0-9.]+)@sha256:[0-9a-f]{64} AS `).FindStringSubmatch(from)
		if parts == nil {
			t.Fatalf("not pinned to a digest: %s", from)
		}
		version = parts[1]
	}
	for _, setup := range regexp.MustCompile(`go-version[^:]*: .*`).FindAllString(workflow, -1) {
		if setup != `go-version: "`+version+`"` {
			t.Errorf("the image is built by Go %s, the workflow has %s", version, setup)
		}
	}
}

// TestReleaseRequiresSuites checks that the release and nightly workflows fail if a suite that a
// machine may skip, such as "page", or one of its tests is skipped because the machine lacks
// something. It also checks that the releases need the real node tests, that the nightly fault job
// runs all shards, that explore runs for hours each night, and that soundness is measured each
// night, idle and beside busy processes.
func TestReleaseRequiresSuites(t *testing.T) {
	release, nightly := read(t, ".github", "workflows", "release.yaml"), read(t, ".github", "workflows", "nightly.yaml")
	sandbox := read(t, ".github", "workflows", "release-sandbox.yaml")
	for _, suites := range []string{"page,sandbox", "node"} {
		for name, workflow := range map[string]string{"release": release, "nightly": nightly} {
			if !strings.Contains(workflow, "REQUIRE_SUITES: "+suites+"\n") {
				t.Errorf("%s.yaml does not require %s", name, suites)
			}
		}
	}
	for name, workflow := range map[string]string{"release": release, "release-sandbox": sandbox} {
		if !strings.Contains(workflow, "needs: [check, node]\n") || !strings.Contains(workflow, "make suite SUITE=node\n      env:\n        REQUIRE_SUITES: node\n") {
			t.Errorf("%s.yaml publishes without the tests of real nodes", name)
		}
	}
	if !strings.Contains(nightly, "part: [1, 2, 3, 4, 5, 6, 7, 8]\n") || !strings.Contains(nightly, `SHARD="$PART/8"`) {
		t.Error("the parts of the nightly faults are not all of them")
	}
	if !strings.Contains(nightly, "make bench-hours ") {
		t.Error("the nightly workflow does not run explore for hours")
	}
	if !strings.Contains(nightly, `make bench-soundness BUSY="$BUSY"`) || !strings.Contains(nightly, `busy: ["", "8"]`) {
		t.Error("the nightly workflow does not measure soundness")
	}
}

// TestReleaseNames checks that a tag that is not a version stops the release immediately, and that
// image names are in lower case even if the GitHub account's name is not.
func TestReleaseNames(t *testing.T) {
	for tag, ok := range map[string]bool{
		"v1.2.3": true, "v0.10.0": true, "v1.2.3-rc.1": true, "v1.2.3-0a": true,
		"v1.2.3+x": false, "v1.2.3-rc.1+x": false, "v1.2.3x": false, "v1.2": false, "v01.2.3": false, "v1.2.3-": false, "v1.2.3-01": false, "v1.2.3-rc..1": false, "1.2.3": false,
	} {
		command := exec.CommandContext(t.Context(), filepath.Join(framework.Root(), "hack", "release-names"))
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "GITHUB_REF_NAME=" + tag, "REGISTRY=registry.example.com", "GITHUB_REPOSITORY=Some-Org/Tidekeeper"}
		out, err := command.CombinedOutput()
		if want := "image=registry.example.com/some-org/tidekeeper\ncharts=registry.example.com/some-org/tidekeeper/charts\n"; ok && (err != nil || string(out) != want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", tag, err, out, want)
		}
		if want := "the tag " + tag + " is no version to release"; !ok && (err == nil || !strings.Contains(string(out), want)) {
			t.Errorf("%s: %v\n%s\nwant it refused: %s", tag, err, out, want)
		}
	}
}

// TestReleaseNeedsTheVulnerabilityDatabase checks that an unreachable vulnerability database stops
// a release, whereas CI only reports it.
func TestReleaseNeedsTheVulnerabilityDatabase(t *testing.T) {
	tools := t.TempDir()
	// This fake make succeeds for all targets except vulncheck.
	if err := os.WriteFile(filepath.Join(tools, "make"), []byte("#!/bin/sh\n[ \"$1\" != vulncheck ] || { echo 'govulncheck: fetching vulnerabilities: no such host' >&2; exit 1; }\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(more ...string) (string, error) {
		command := exec.CommandContext(t.Context(), filepath.Join(framework.Root(), ".ci", "run"))
		command.Env = append([]string{"PATH=" + tools + ":" + os.Getenv("PATH"), "CI_TIMES=" + filepath.Join(tools, "times")}, more...)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil || !strings.Contains(out, "SKIPPED") {
		t.Errorf("CI: %v\n%s", err, out)
	}
	if out, err := run("REQUIRE_VULNCHECK=1"); err == nil || !strings.Contains(out, "FAILED") {
		t.Errorf("a release: %v\n%s", err, out)
	}
	if !strings.Contains(read(t, ".github", "workflows", "release.yaml"), "REQUIRE_VULNCHECK: \"1\"") {
		t.Error("the release does not require it")
	}
}
