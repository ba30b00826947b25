// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// suite is a set of tests that one command runs.
type suite struct {
	name string
	// module is the folder of a Go module, and packages are patterns in it.
	module   string
	packages []string
	// flags are flags of go test.
	flags []string
	// race runs the tests with the race detector, where there is a C compiler, and racing are
	// variables of the environment that are set then.
	race   bool
	racing []string
	// replaces is the name of a suite of make test that make test-all leaves out, as this one runs
	// the same tests, and more of them.
	replaces string
	// command is run in place of go test. It prints what go test -json prints.
	command []string
	// env are variables of the environment, as NAME=value. ${BIN} is the folder bin.
	env []string
	// needs are the make targets that build the programs of the suite. make build is done
	// before any suite.
	needs []string
	// seconds is about how long the suite takes beside others in CI, by "The suites" at the end of its log: of
	// those that can run, the longest is next.
	seconds int
	// alone: nothing else runs beside it, as it compares times.
	alone bool
	// requires returns why this machine cannot run the suite, "" if it can.
	requires func() string
}

// The tiers: make test runs the fast one, and make test-all both, as all, without those that others
// replace. Other suites are repetitions of a part, and run by name.
const (
	fast   = "fast"
	rest   = "rest"
	all    = "all"
	others = "others"
)

// testAll lets tests run that take minutes of the real clock, or that play more cases.
const testAll = "TEST_ALL=1"

// race are the programs with the race detector, which the tests of a package take that calls
// framework.UseRaceBuilds.
var race = []string{"TIDEKEEPER_RACE_BIN=${BIN}/tidekeeper-race", "PROXY_RACE_BIN=${BIN}/proxy-race"}

// clocks is the manager of tests that set its clock, see framework.WithClocks.
var clocks = []string{"CLOCK_BIN=${BIN}/tidekeeper-clock"}

// tiers are all suites. TestEveryTestIsRun compares them with the packages that have tests.
var tiers = map[string][]suite{
	fast: {
		{name: "unit", module: ".", packages: []string{"./..."}, seconds: 100},
		{name: "e2e", module: "test", packages: []string{"./e2e"}, flags: uncached, env: clocks, needs: []string{"build-clock"}, seconds: 300},
		{name: "cli", module: "test", packages: []string{"./cli"}, flags: uncached, env: clocks, needs: []string{"build-clock"}, seconds: 150},
		{name: "framework", module: "test", packages: []string{"./framework"}, flags: uncached, seconds: 20},
		{name: "sandbox-slice", module: "sandbox", command: sandboxMake("test-slice"), seconds: 100},
	},
	rest: {
		blackBox("e2e", 1000, suite{name: "e2e-race", replaces: "e2e", racing: race, env: clocks, needs: []string{"build-race", "build-clock"}}),
		blackBox("cli", 800, suite{name: "cli-race", replaces: "cli", env: clocks, needs: []string{"build-clock"}}),
		blackBox("fault/outage", 180, suite{env: append([]string{"SOAK=2m"}, clocks...), needs: []string{"build-clock"}}),
		blackBox("fault/clock", 40, suite{env: clocks, needs: []string{"build-clock"}}),
		blackBox("fault/clock/manager", 10, suite{}),
		blackBox("fault/forgery", 30, suite{}),
		blackBox("fault/underway", 60, suite{}),
		blackBox("fault/explore", 240, suite{needs: []string{"build-argo-rollouts"}}),
		blackBox("fault/fuzz", 450, suite{}),
		blackBox("capacity", 220, suite{}),
		blackBox("tenants", 240, suite{}),
		blackBox("readme", 150, suite{needs: []string{"build-helm"}}),
		blackBox("argo", 80, suite{needs: []string{"build-argo-rollouts"}}),
		blackBox("monitoring", 60, suite{needs: []string{"build-prometheus"}}),
		blackBox("page", 240, suite{requires: browser}),
		blackBox("neighbors", 210, suite{needs: []string{
			"build-helm", "build-metrics-server", "build-descheduler", "build-cert-manager", "build-prometheus", "build-prometheus-operator",
		}}),
		blackBox("install", 180, suite{needs: []string{"build-helm", "build-e2e-test"}}),
		{name: "release", module: "test", packages: []string{"./release"}, flags: uncached, env: []string{"RELEASE=${BIN}/release-test", "PACKER_BIN=${BIN}/packer", "KREW_BIN=${BIN}/krew", "COSIGN_BIN=${BIN}/cosign"}, needs: []string{"build-helm", "build-krew", "build-cosign", "build-release"}, seconds: 90},
		blackBox("node", 280, suite{env: []string{"RELEASE=${BIN}/release-test"}, needs: []string{"build-node", "build-helm", "build-metrics-server", "build-release"}, requires: realNodes}),
		{name: "unit-race", replaces: "unit", module: ".", packages: []string{"./..."}, race: true, flags: []string{"-timeout=20m"}, env: []string{testAll, "CI=true"}, seconds: 900},
		// With the race detector it plays few cases, as each takes long then.
		{name: "cases", module: ".", packages: []string{"./internal/restart/decision"}, flags: []string{"-run=^TestEveryTickOnce$"}, env: []string{testAll, "CI=true"}, seconds: 60},
		{name: "framework-race", replaces: "framework", module: "test", packages: []string{"./framework"}, race: true, flags: uncached, seconds: 20},
		{name: "sandbox", replaces: "sandbox-slice", module: "sandbox", command: sandboxMake("test-program"), env: []string{testAll}, seconds: 1400},
		{name: "sandbox-parts", module: "sandbox", command: sandboxMake("test-parts"), env: []string{testAll}, seconds: 400},
		{name: "site", module: "hack/site", packages: []string{"./..."}, seconds: 5},
		{name: "packer", module: "hack/release", packages: []string{"./..."}, seconds: 5},
		{name: "plot", module: "hack/plot", packages: []string{"./..."}, seconds: 5},
		{name: "bench", module: "test", packages: []string{"./scale"}, flags: []string{"-count=1", "-timeout=60m"}, env: []string{testAll, "SCALE=small", "OUT=${BIN}/bench"}, seconds: 240, alone: true},
		{
			name: "sandbox-release", module: "sandbox", packages: []string{"./test"}, flags: append([]string{"-run=^TestKubernetesRelease$"}, uncached...),
			needs: []string{"build-kubernetes KUBERNETES=" + oldestRelease}, seconds: 30,
		},
		{
			name: "oldest-release", module: "test", packages: []string{"./e2e", "./cli"}, flags: append([]string{"-p=1", "-run=" + samplePattern()}, uncached...),
			env: []string{"SANDBOX_KUBERNETES=" + oldestRelease}, needs: []string{"build-kubernetes KUBERNETES=" + oldestRelease}, seconds: 80,
		},
	},
	others: {
		// What make check runs.
		{name: sampleSuite, module: "test", packages: []string{"./e2e", "./cli"}, flags: append([]string{"-p=1", "-run=" + samplePattern()}, uncached...), seconds: 120},
	},
}

// sampleSuite is the name of the suite of the sample.
const sampleSuite = "sample"

// oldestRelease is the oldest release of Kubernetes that Tidekeeper supports, of
// sandbox/kubernetes/versions.
const oldestRelease = "1.32"

// uncached are the flags of tests that run programs, which Go's cache of results does not
// know.
var uncached = []string{"-count=1", "-timeout=45m"}

// sample are black-box tests of each capability: what make check runs, and what is run with
// the oldest release of Kubernetes.
var sample = []string{
	"TestNodePool_Spec", "TestNodePool_DeletionCleansNodes", "TestRestart_SpecAndStatus", "TestRestart_AllKinds", "TestOptIn_MakesASuspendedRestart",
	"TestPodCount_OffByDefault", "TestPodStartupByPool", "TestManager_ProbesAndMetrics", "TestPools", "TestRestartsNext", "TestPodsTimelineAndSlow",
}

func samplePattern() string { return "^(" + strings.Join(sample, "|") + ")$" }

// blackBox completes the suite of a folder of test/, with the race detector in the test
// itself. It takes the given seconds.
func blackBox(folder string, seconds int, s suite) suite {
	s.name = cmp.Or(s.name, strings.ReplaceAll(folder, "/", "-"))
	s.module, s.packages, s.flags, s.race, s.seconds = "test", []string{"./" + folder}, uncached, true, seconds
	s.env = append([]string{testAll}, s.env...)
	return s
}

// sandboxMake is the command of a target of the sandbox's Makefile that runs go test several times.
func sandboxMake(target string) []string {
	return []string{"make", "--no-print-directory", "-C", "sandbox", target}
}

// arguments returns the command of a suite, with these additional flags of go test.
func (s suite) arguments(added []string) []string {
	switch {
	case s.command != nil && s.command[0] == "make":
		// Written for make, and then for the shell.
		flags := "TESTFLAGS=-json"
		for _, flag := range added {
			flags += " '" + strings.NewReplacer("$", "$$", "'", `'\''`).Replace(flag) + "'"
		}
		return append(slices.Clone(s.command), flags)
	case s.command != nil:
		return s.command
	}
	args := []string{"go", "test", "-C", s.module, "-json"}
	if s.race && hasCompiler() {
		args = append(args, "-race")
	}
	return slices.Concat(args, s.flags, added, s.packages)
}

// environment returns the variables that the suite adds to the environment.
func (s suite) environment(bin string) []string {
	env := slices.Clone(s.env)
	if s.race && hasCompiler() {
		env = append(append(env, s.racing...), "CGO_ENABLED=1")
	}
	for i, variable := range env {
		env[i] = strings.ReplaceAll(variable, "${BIN}", bin)
	}
	return env
}

// everything returns the suites of make test-all: each test is run once, with the race detector if
// there is a suite for that.
func everything() []suite {
	suites := slices.Concat(tiers[fast], tiers[rest])
	return slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
		return slices.ContainsFunc(suites, func(other suite) bool { return other.replaces == s.name })
	})
}

// choose returns the suites of tiers and of single names, without repetitions.
func choose(names []string) ([]suite, error) {
	var chosen []suite
	add := func(s suite) {
		if !slices.ContainsFunc(chosen, func(other suite) bool { return other.name == s.name }) {
			chosen = append(chosen, s)
		}
	}
	for _, name := range names {
		known := name == all
		if known {
			for _, s := range everything() {
				add(s)
			}
		}
		for _, tier := range []string{fast, rest, others} {
			for _, s := range tiers[tier] {
				if name == tier || name == s.name {
					known = true
					add(s)
				}
			}
		}
		if !known {
			return nil, fmt.Errorf("there is no suite %q: 'make suites' lists them", name)
		}
	}
	return chosen, nil
}

// hasCompiler reports whether there is the C compiler that the race detector needs.
func hasCompiler() bool {
	_, err := exec.LookPath(compiler())
	return err == nil
}

func compiler() string {
	out, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return "cc"
	}
	return strings.TrimSpace(string(out))
}

// browser is the requirement of the page's tests.
func browser() string {
	for _, name := range []string{os.Getenv("CHROMIUM_BIN"), "chromium", "chromium-browser", "chrome-headless-shell", "google-chrome"} {
		if name == "" {
			continue
		}
		if _, err := exec.LookPath(name); err == nil {
			return ""
		}
	}
	return "there is no browser: apt-get install chromium, or set CHROMIUM_BIN"
}

// realNodes is the requirement of tests on real nodes: root, and a machine that lets it have
// cgroups, of version 1 or 2, and namespaces.
func realNodes() string {
	switch {
	case runtime.GOOS != "linux":
		return "real nodes need Linux"
	case os.Geteuid() != 0:
		return "real nodes need root"
	case !hasCompiler():
		return "real nodes need runc, and that a C compiler"
	default:
		return ""
	}
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Clean(path))
	return err == nil
}
