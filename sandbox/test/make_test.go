// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wouldRun returns the commands that make would run for the given targets in the sandbox's
// Makefile.
func wouldRun(t *testing.T, targets ...string) string {
	t.Helper()
	cmd := exec.Command("make", append([]string{"--no-print-directory", "-n", "-C", "..", "TESTFLAGS=-json"}, targets...)...)
	// Remove the variables that the make process running this test has exported, because they would
	// change the behavior of this make.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make -n %s: %v\n%s", targets, err, out)
	}
	return string(out)
}

// goList runs go list in a folder of the sandbox and returns the listed packages.
func goList(t *testing.T, folder string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-find"}, args...)...)
	cmd.Dir = filepath.Join("..", folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v\n%s", cmd.Dir, err, stderr.String())
	}
	return strings.Fields(string(out))
}

// goTest matches a "go test" command in make's output. Its groups are the folder of the -C flag,
// the other flags, and the packages.
var goTest = regexp.MustCompile(`go test(?: -C (\S+))? +(-\S+(?: +-\S+)*) +([^-|&;][^|&;]*)`)

// TestMakeTest checks that "make test", as well as its two halves together, runs the tests of every
// package in each module and passes on TESTFLAGS. The target test-slice must also cover all
// packages, but without the race detector and with only some of the tests in ./test.
func TestMakeTest(t *testing.T) {
	modules, err := filepath.Glob("../*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../*/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	modules = append(modules, deeper...)
	var want []string
	for _, module := range append(modules, "../go.mod") {
		folder, err := filepath.Rel("..", filepath.Dir(module))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, goList(t, folder, "-e", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")...)
	}
	for _, target := range []string{"test", "test-parts test-program", "test-slice"} {
		text := wouldRun(t, strings.Fields(target)...)
		var tested []string
		for _, command := range goTest.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(command[2], "-json") {
				t.Errorf("make %s does not give TESTFLAGS to: %s", target, command[0])
			}
			tested = append(tested, goList(t, command[1], strings.Fields(command[3])...)...)
		}
		if got, all := len(goTest.FindAllString(text, -1)), strings.Count(text, "go test "); got != all {
			t.Errorf("of make %s, this test understands %d of %d calls of go test:\n%s", target, got, all, text)
		}
		for _, name := range want {
			if !slices.Contains(tested, name) {
				t.Errorf("make %s does not test %s", target, name)
			}
		}
		if target == "test-slice" {
			wantThere(t, text)
		}
	}
}

// wantThere fails the test unless every test of ./test that "make test-slice" selects exists.
func wantThere(t *testing.T, text string) {
	t.Helper()
	pattern := regexp.MustCompile(`-run='([^']*)' \./test`).FindStringSubmatch(text)
	if pattern == nil {
		t.Fatal("make test-slice does not choose among the tests of ./test")
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, file := range files {
		more, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, more...)
	}
	for name := range strings.SplitSeq(pattern[1], "|") {
		name, _, _ = strings.Cut(strings.Trim(name, "^$"), "$/")
		if !strings.Contains(string(source), "\nfunc "+name+"(t *testing.T) {") {
			t.Errorf("there is no test %s, which make test-slice plays", name)
		}
	}
}
