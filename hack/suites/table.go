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

// suite is a set of tests that are run by one command.
type suite struct {
	name string
	// module is the folder of the tests' Go module. packages lists package patterns within the
	// module.
	module   string
	packages []string
	// except lists packages that match packages but that another suite runs.
	except []string
	// flags are passed to go test.
	flags []string
	// race enables the race detector if a C compiler is installed. racing lists environment
	// variables that are set only in this case.
	race   bool
	racing []string
	// replaces names a suite of make test that make test-all omits, because this suite runs the
	// same tests and more.
	replaces string
	// command, if set, is run instead of go test. Its output must have the format of go test -json.
	command []string
	// env lists environment variables as NAME=value. ${BIN} stands for the repository's folder bin.
	env []string
	// needs lists the make targets that build the programs that the suite runs. The target build
	// has always been made before.
	needs []string
	// seconds is the suite's approximate duration in CI, where other suites run at the same time.
	// It is taken from "The suites" at the end of CI's log. It decides which suites begin first: see
	// queue.
	seconds int
	// early is true for a suite that begins before the others, because it finds most mistakes in the
	// time that it takes.
	early bool
	// requires returns the reason for which this machine cannot run the suite. It returns "" if it
	// can.
	requires func() string
}

// Tiers of suites. make test runs the tier "fast". make test-all runs "all", which consists of
// "fast" and "rest" without the suites that others replace. The suites in "others" repeat some of
// the tests, and run only when they are named.
const (
	fast   = "fast"
	rest   = "rest"
	all    = "all"
	others = "others"
)

// testAll enables tests that take minutes of real time or run additional cases.
const testAll = "TEST_ALL=1"

// race names the manager and the proxy that were built with the race detector. The tests of
// packages that call framework.UseRaceBuilds run these programs.
var race = []string{"TIDEKEEPER_RACE_BIN=${BIN}/tidekeeper-race", "PROXY_RACE_BIN=${BIN}/proxy-race"}

// clocks names the manager build for tests that set the manager's clock: see framework.WithClocks.
var clocks = []string{"CLOCK_BIN=${BIN}/tidekeeper-clock"}

// tiers lists all suites by tier. TestEveryTestIsRun compares them with the packages that have
// tests.
var tiers = map[string][]suite{
	fast: {
		{name: "unit", module: ".", packages: []string{"./..."}, seconds: 100},
		{name: "e2e", module: "test", packages: []string{"./e2e"}, flags: uncached, env: clocks, needs: []string{"build-clock"}, seconds: 300},
		{name: "cli", module: "test", packages: []string{"./cli"}, flags: uncached, env: clocks, needs: []string{"build-clock"}, seconds: 150},
		{name: "framework", module: "test", packages: []string{"./framework"}, flags: uncached, seconds: 20},
		{name: "sandbox-slice", module: "sandbox", command: sandboxMake("test-slice"), seconds: 100},
	},
	rest: {
		blackBox("e2e", 1100, suite{name: "e2e-race", replaces: "e2e", racing: race, env: clocks, needs: []string{"build-race", "build-clock"}}),
		blackBox("cli", 900, suite{name: "cli-race", replaces: "cli", env: clocks, needs: []string{"build-clock"}}),
		blackBox("fault/outage", 180, suite{env: append([]string{"SOAK=2m"}, clocks...), needs: []string{"build-clock"}}),
		blackBox("fault/clock", 60, suite{env: append([]string{"OLDER=${BIN}/older"}, clocks...), needs: []string{"build-clock", "build-older", "build-helm"}}),
		blackBox("fault/clock/manager", 10, suite{}),
		blackBox("fault/forgery", 30, suite{}),
		blackBox("fault/underway", 60, suite{}),
		blackBox("fault/explore", 240, suite{needs: []string{"build-argo-rollouts"}}),
		blackBox("fault/fuzz", 350, suite{flags: []string{"-parallel=4"}}),
		blackBox("capacity", 220, suite{}),
		blackBox("tenants", 800, suite{}),
		blackBox("rotate", 330, suite{}),
		blackBox("responder", 150, suite{}),
		blackBox("readme", 310, suite{needs: []string{"build-helm"}}),
		blackBox("argo", 80, suite{needs: []string{"build-argo-rollouts"}}),
		blackBox("monitoring", 60, suite{needs: []string{"build-prometheus"}}),
		blackBox("page", 280, suite{requires: browser}),
		blackBox("neighbors", 210, suite{needs: []string{
			"build-helm", "build-metrics-server", "build-descheduler", "build-cert-manager", "build-prometheus", "build-prometheus-operator",
		}}),
		blackBox("install", 180, suite{needs: []string{"build-helm", "build-e2e-test"}}),
		{name: "release", module: "test", packages: []string{"./release"}, flags: uncached, env: []string{"RELEASE=${BIN}/release-test", "RELEASE_NEXT=${BIN}/release-next", "PACKER_BIN=${BIN}/packer", "KREW_BIN=${BIN}/krew", "COSIGN_BIN=${BIN}/cosign"}, needs: []string{"build-helm", "build-krew", "build-cosign", "build-release"}, seconds: 130},
		blackBox("node", 450, suite{env: []string{"RELEASE=${BIN}/release-test"}, needs: []string{"build-node", "build-helm", "build-metrics-server", "build-release"}, requires: realNodes}),
		{name: "unit-race", early: true, replaces: "unit", module: ".", packages: []string{"./..."}, except: sequential, race: true, flags: []string{"-timeout=20m", "-skip=" + pattern(sequentialTests)}, env: unitEnv, seconds: 400},
		{name: "unit-sequential", module: ".", packages: sequential, env: unitEnv, seconds: 60},
		// Of TestEveryTickOnce, unit-race runs a few cases, too.
		{name: "unit-sequential-tests", module: ".", packages: []string{"./internal/manager", "./internal/restart/decision"}, flags: []string{"-run=" + pattern(append([]string{"TestEveryTickOnce"}, sequentialTests...))}, env: unitEnv, seconds: 60},
		{name: "framework-race", replaces: "framework", module: "test", packages: []string{"./framework"}, race: true, flags: uncached, seconds: 20},
		{name: "sandbox", replaces: "sandbox-slice", module: "sandbox", command: sandboxMake("test-program"), env: []string{testAll}, seconds: 2000},
		{name: "sandbox-parts", module: "sandbox", command: sandboxMake("test-parts"), env: []string{testAll}, early: true, seconds: 400},
		{name: "site", module: "hack/site", packages: []string{"./..."}, seconds: 5},
		{name: "packer", module: "hack/release", packages: []string{"./..."}, seconds: 5},
		{name: "room", module: "test/room", packages: []string{"./..."}, flags: uncached, seconds: 60},
		{name: "plot", module: "hack/plot", packages: []string{"./..."}, seconds: 5},
		{name: "bench", module: "test", packages: []string{"./scale"}, flags: []string{"-count=1", "-timeout=60m"}, env: []string{testAll, "SCALE=small", "OUT=${BIN}/bench"}, seconds: 270},
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
		// This suite is run by make check.
		{name: sampleSuite, module: "test", packages: []string{"./e2e", "./cli"}, flags: append([]string{"-p=1", "-run=" + samplePattern()}, uncached...), seconds: 120},
	},
}

// unitEnv is the environment of the unit tests in make test-all.
var unitEnv = []string{testAll, "CI=true"}

// sequential lists the packages with unit tests that start no goroutines, also not in the packages
// that they import from this module: see TestSequentialPackagesStartNothing. There is no data race
// to find in them, and the race detector makes some of them ten times as slow.
var sequential = []string{
	"./api/v1", "./docs", "./hack/lint",
	"./internal/capacity", "./internal/drain", "./internal/evictionresponder/decision", "./internal/freeze/period", "./internal/kube/lease",
	"./internal/kube/nodes", "./internal/kube/pods", "./internal/maintenance/decision", "./internal/maintenance/forecast", "./internal/maintenance/moves",
	"./internal/nodepool/ownership", "./internal/nodepool/plan", "./internal/nodepool/preview", "./internal/nodepool/sample", "./internal/nodepool/setting",
	"./internal/nodepool/state", "./internal/nodepool/state/load", "./internal/nodepool/state/room", "./internal/nodepool/test/convergence",
	"./internal/pods/podtimeline", "./internal/resources", "./internal/restart/budget", "./internal/restart/evict", "./internal/restart/forecast",
	"./internal/restart/order", "./internal/schedule", "./internal/text", "./internal/view", "./internal/workload", "./internal/workload/podconfig",
}

// sequentialTests lists tests of other packages that start no goroutines.
var sequentialTests = []string{"TestControllersReadCachedFields", "TestReadsAreFound", "TestKeptPodFields"}

// sampleSuite is the name of the suite that runs the tests in sample.
const sampleSuite = "sample"

// oldestRelease is the oldest supported Kubernetes release in sandbox/kubernetes/versions.
const oldestRelease = "1.32"

// uncached lists the flags for tests that run programs. Go would cache their results, but does not
// detect changes of the programs.
var uncached = []string{"-count=1", "-timeout=45m"}

// sample lists some black-box tests of each capability. They are run by make check, and with the
// oldest supported Kubernetes release.
var sample = []string{
	"TestNodePool_Spec", "TestNodePool_DeletionCleansNodes", "TestRestart_SpecAndStatus", "TestRestart_AllKinds", "TestOptIn_MakesASuspendedRestart",
	"TestPodCount_OffByDefault", "TestPodStartupByPool", "TestManager_ProbesAndMetrics", "TestPools", "TestRestartsNext", "TestPodsTimelineAndSlow",
}

func samplePattern() string { return pattern(sample) }

// pattern returns a regular expression that matches the names of the given tests.
func pattern(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// blackBox completes the suite of a folder in test/. seconds is the suite's approximate duration. The
// race detector is enabled in the test process only if the suite replaces another. It finds only
// races of the tests themselves, and e2e and cli run the code that all of them share.
func blackBox(folder string, seconds int, s suite) suite {
	s.name = cmp.Or(s.name, strings.ReplaceAll(folder, "/", "-"))
	s.module, s.packages, s.flags, s.race, s.seconds = "test", []string{"./" + folder}, slices.Concat(uncached, s.flags), s.replaces != "", seconds
	s.env = append([]string{testAll}, s.env...)
	return s
}

// sandboxMake returns the command for a target in the sandbox's Makefile that runs go test several
// times.
func sandboxMake(target string) []string {
	return []string{"make", "--no-print-directory", "-C", "sandbox", target}
}

// arguments returns the suite's command, with the given additional flags for go test.
func (s suite) arguments(added []string) []string {
	switch {
	case s.command != nil && s.command[0] == "make":
		// The flags are quoted for make and then for the shell.
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

// withoutExceptions returns the package patterns to run. If some packages are excepted, these are
// the paths of all others.
func (s suite) withoutExceptions(root string) []string {
	if len(s.except) == 0 {
		return s.packages
	}
	all, excepted := listed(filepath.Join(root, s.module), s.packages), listed(filepath.Join(root, s.module), s.except)
	if all == nil || excepted == nil {
		return s.packages // go test reports what is wrong with them.
	}
	return slices.DeleteFunc(all, func(pkg string) bool { return slices.Contains(excepted, pkg) })
}

// listed returns the import paths of the packages of a module that match the patterns. It returns
// nil if the go command fails.
func listed(module string, patterns []string) []string {
	command := exec.Command("go", append([]string{"list", "-find"}, patterns...)...)
	command.Dir = module
	out, err := command.Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// environment returns the environment variables that the suite sets.
func (s suite) environment(bin string) []string {
	env := slices.Clone(s.env)
	if s.race && hasCompiler() {
		// A program with the race detector would wait for a second before it exits.
		env = append(append(env, s.racing...), "CGO_ENABLED=1", "GORACE=atexit_sleep_ms=10")
	}
	for i, variable := range env {
		env[i] = strings.ReplaceAll(variable, "${BIN}", bin)
	}
	return env
}

// everything returns the suites of make test-all. It omits the suites that others replace.
func everything() []suite {
	suites := slices.Concat(tiers[fast], tiers[rest])
	return slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
		return slices.ContainsFunc(suites, func(other suite) bool { return other.replaces == s.name })
	})
}

// choose returns the suites with the given names, without duplicates. A name may be the name of a
// tier.
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

// hasCompiler reports whether a C compiler is installed, which the race detector needs.
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

// browser returns the reason for which this machine cannot run the dashboard's tests, or "" if it
// can.
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

// realNodes returns the reason for which this machine cannot run tests on real nodes, which need
// Linux, root and a C compiler. It returns "" if there is none. It does not check whether the
// machine allows cgroups and namespaces.
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
