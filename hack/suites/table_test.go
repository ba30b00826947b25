// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownTargets lists the modules whose tests are listed in their own Makefile. The sandbox's
// TestMakeTest checks these lists.
var ownTargets = []string{"sandbox", "sandbox/client", "sandbox/examples/guestbook"}

// TestEveryTestIsRun checks that make test-all runs every package with tests.
func TestEveryTestIsRun(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	byModule := map[string][]string{} // maps each module to the package patterns of its suites
	for _, s := range everything() {
		if s.command == nil {
			byModule[s.module] = append(byModule[s.module], s.packages...)
		}
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "go.mod" {
			// The folders bin have what was built, and sources of other modules that benchmarks read.
			if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
				return fs.SkipDir
			}
			return err
		}
		module, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || slices.Contains(ownTargets, module) {
			return err
		}
		var run []string
		if patterns := byModule[module]; len(patterns) > 0 {
			run = withTests(t, filepath.Dir(path), patterns...)
		}
		for _, pkg := range withTests(t, filepath.Dir(path), "./...") {
			if !slices.Contains(run, pkg) {
				t.Errorf("no suite runs the tests of %s: add it to hack/suites/table.go", pkg)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplacedSuitesLoseNothing checks that make test-all runs each test of make test. A suite that
// replaces another must run all of its packages, with TEST_ALL (except for the suite framework) and
// with the race detector (except for suites of the sandbox's Makefile, which decides on it itself).
func TestReplacedSuitesLoseNothing(t *testing.T) {
	t.Parallel()
	suites := everything()
	played := func(name string) bool {
		return slices.ContainsFunc(suites, func(s suite) bool { return s.name == name })
	}
	for _, s := range tiers[fast] {
		i := slices.IndexFunc(suites, func(other suite) bool { return other.replaces == s.name })
		if i < 0 {
			if !played(s.name) {
				t.Errorf("make test-all does not run %s, and nothing replaces it", s.name)
			}
			continue
		}
		by := suites[i]
		if played(s.name) {
			t.Errorf("make test-all runs %s, which %s replaces", s.name, by.name)
		}
		if by.module != s.module || !slices.Equal(by.packages, s.packages) || slices.ContainsFunc(by.flags, func(f string) bool { return strings.HasPrefix(f, "-run") }) ||
			!slices.Contains(by.env, testAll) && s.name != "framework" || !by.race && by.command == nil || (by.command == nil) != (s.command == nil) {
			t.Errorf("%s plays less than %s, which it replaces", by.name, s.name)
		}
	}
	for _, s := range suites {
		if s.replaces != "" && !slices.ContainsFunc(tiers[fast], func(other suite) bool { return other.name == s.replaces }) {
			t.Errorf("%s replaces %s, which make test does not run", s.name, s.replaces)
		}
	}
}

// TestExceptionsAreRun checks that the unit tests that do not run with the race detector run without
// it: make test-all runs all tests of each excepted package, and each test that is skipped by name.
func TestExceptionsAreRun(t *testing.T) {
	t.Parallel()
	for _, s := range everything() {
		for _, pkg := range s.except {
			if !slices.ContainsFunc(everything(), func(other suite) bool {
				return other.module == s.module && other.replaces == "" && slices.Contains(other.packages, pkg) && len(other.flags) == 0 && slices.Contains(other.env, testAll)
			}) {
				t.Errorf("%s does not run the tests of %s, and no suite runs all of them", s.name, pkg)
			}
		}
		if len(s.except) == 0 {
			continue
		}
		for _, name := range sequentialTests {
			if !selects(s, "-skip=", name) || !slices.ContainsFunc(everything(), func(other suite) bool { return selects(other, "-run=", name) && definesTest(t, other, name) }) {
				t.Errorf("%s is not skipped by %s, or no other suite runs it", name, s.name)
			}
		}
	}
}

// selects reports whether the suite's flag, such as -run=, matches the name of a test.
func selects(s suite, flag, name string) bool {
	return slices.ContainsFunc(s.flags, func(f string) bool {
		expression, ok := strings.CutPrefix(f, flag)
		return ok && regexp.MustCompile(expression).MatchString(name)
	})
}

// definesTest reports whether a package of the suite defines a test.
func definesTest(t *testing.T, s suite, name string) bool {
	t.Helper()
	for _, pkg := range s.packages {
		files, err := filepath.Glob(filepath.Join("../..", s.module, pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "\nfunc "+name+"(") {
				return true
			}
		}
	}
	return false
}

// TestSequentialPackagesStartNothing checks that no goroutine is started by the tests that do not
// run with the race detector, by the packages that they test, and by what these import from this
// module. Tests that only compile or parse source code, or run programs, are no exception.
func TestSequentialPackagesStartNothing(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-test", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}"}, sequential...)...)
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	folders := strings.Fields(string(out))
	slices.Sort(folders)
	listed := listed("../..", sequential)
	for _, folder := range slices.Compact(folders) {
		isListed := slices.ContainsFunc(listed, func(pkg string) bool {
			return strings.HasSuffix(folder, strings.TrimPrefix(pkg, "tidekeeper.dev/tidekeeper"))
		})
		for _, at := range goroutines(t, folder, isListed) {
			t.Errorf("%s starts a goroutine: remove the packages that import it from sequential in hack/suites/table.go", at)
		}
	}
}

// goroutines returns the places in a folder's Go files that start a goroutine: a go statement, or a
// call of a method Go or Parallel. tests includes the tests.
func goroutines(t *testing.T, folder string, tests bool) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	files := token.NewFileSet()
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" || !tests && strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, filepath.Join(folder, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.GoStmt:
				places = append(places, files.Position(n.Pos()).String())
			case *ast.SelectorExpr:
				if n.Sel.Name == "Go" || n.Sel.Name == "Parallel" {
					places = append(places, files.Position(n.Pos()).String())
				}
			}
			return true
		})
	}
	return places
}

// TestHalvesOfTheSandbox checks that make test-all runs both Makefile targets with the sandbox's
// own tests. The sandbox's TestMakeTest checks that these targets run all tests.
func TestHalvesOfTheSandbox(t *testing.T) {
	t.Parallel()
	var targets []string
	for _, s := range everything() {
		if s.command != nil {
			targets = append(targets, s.command[len(s.command)-1])
		}
	}
	slices.Sort(targets)
	if want := []string{"test-parts", "test-program"}; !slices.Equal(targets, want) {
		t.Errorf("make test-all runs the targets %q of the sandbox, want %q", targets, want)
	}
}

// TestChosenByName checks that a name chooses exactly the named suite, even if another suite
// replaces it.
func TestChosenByName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		names []string
		want  bool
	}{{[]string{"e2e", "e2e-race"}, true}, {[]string{"e2e", all}, true}, {[]string{fast}, true}, {[]string{all}, false}, {[]string{rest}, false}} {
		suites, err := choose(tc.names)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(suites, func(s suite) bool { return s.name == "e2e" }); got != tc.want {
			t.Errorf("%q has e2e: %t, want %t", tc.names, got, tc.want)
		}
	}
}

// TestFlagsReachMake checks that additional flags are passed on to the go test commands in a
// Makefile.
func TestFlagsReachMake(t *testing.T) {
	t.Parallel()
	s := suite{command: sandboxMake("test")}
	got := s.arguments([]string{"-run=^(TestA|TestB)$", "-count=1"})
	if want := "TESTFLAGS=-json '-run=^(TestA|TestB)$$' '-count=1'"; got[len(got)-1] != want {
		t.Errorf("make gets %s, want %s", got[len(got)-1], want)
	}
	if got := s.arguments(nil); got[len(got)-1] != "TESTFLAGS=-json" {
		t.Errorf("make gets %q", got)
	}
}

// withTests returns the packages of a module that match the patterns and have tests.
func withTests(t *testing.T, module string, patterns ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e", "-find", "-json=ImportPath,TestGoFiles,XTestGoFiles,Error"}, patterns...)...)
	command.Dir = module
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	var packages []string
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath                string
			TestGoFiles, XTestGoFiles []string
			Error                     *struct{ Err string }
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Error != nil && len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 && strings.Contains(p.Error.Err, "directory not found") {
			t.Errorf("%s: %s", module, p.Error.Err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			packages = append(packages, p.ImportPath)
		}
	}
}

// TestNeedsAreTargets checks that each make target that a suite needs exists in the Makefile.
func TestNeedsAreTargets(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		for _, s := range tier {
			for _, target := range s.needs {
				command := exec.CommandContext(t.Context(), "make", append([]string{"-C", "../..", "--no-print-directory", "-n"}, strings.Fields(target)...)...)
				if out, err := command.CombinedOutput(); err != nil {
					t.Errorf("%s needs %s: %v\n%s", s.name, target, err, out)
				}
			}
		}
	}
}
