// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownTargets are the modules whose suites their own Makefile lists; TestMakefileRunsEveryTest
// of the sandbox compares them.
var ownTargets = []string{"sandbox", "sandbox/client"}

// Every package that has tests is part of a suite, and all that is listed exists.
func TestEveryTestIsRun(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	byModule := map[string][]string{} // The patterns of all suites.
	for _, tier := range tiers {
		for _, s := range tier {
			if s.command == nil {
				byModule[s.module] = append(byModule[s.module], s.packages...)
			}
		}
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "go.mod" {
			if entry.IsDir() && entry.Name() == ".git" {
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

// withTests returns the packages of a module that match patterns and have tests.
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

// Each make target that a suite needs exists.
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
