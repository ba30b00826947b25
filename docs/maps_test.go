// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitectureTree checks that the folder tree in architecture.md lists only existing folders
// and is complete. It must contain each subfolder of cmd, internal and test; of the other folders,
// only the top level is required.
func TestArchitectureTree(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tree, _ := strings.Cut(string(text), "\n```\n")
	tree, _, found := strings.Cut(tree, "\n```\n")
	if !found {
		t.Fatal("architecture.md has no folder tree")
	}
	var inTree []string
	for line := range strings.Lines(tree) {
		folder, _, ok := strings.Cut(line, "/ ")
		if !ok {
			t.Errorf("no folder in the line %q", line)
			continue
		}
		inTree = append(inTree, folder)
		if info, err := os.Stat(filepath.Join(root, folder)); err != nil || !info.IsDir() {
			t.Errorf("architecture.md has the folder %s, which does not exist", folder)
		}
	}
	has := func(folder string) bool {
		return slices.ContainsFunc(inTree, func(f string) bool { return f == folder || strings.HasPrefix(f, folder+"/") })
	}
	for _, folder := range folders(t, root) {
		if !has(folder) {
			t.Errorf("architecture.md does not have the folder %s", folder)
		}
	}
	for _, listed := range []string{"cmd", "internal", "test"} {
		for _, folder := range folders(t, filepath.Join(root, listed)) {
			if !has(listed + "/" + folder) {
				t.Errorf("architecture.md does not have the folder %s/%s", listed, folder)
			}
		}
	}
}

// folders returns a folder's subfolders, without hidden folders, build results and test data.
func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") && entry.Name() != "bin" && entry.Name() != "testdata" {
			names = append(names, entry.Name())
		}
	}
	return names
}

var (
	mapLine = regexp.MustCompile(`(?m)^//\s+(?:- )?\w+\.go\b`)
	goFile  = regexp.MustCompile(`\b\w+\.go\b`)
)

// TestPackageMaps checks that if a package comment lists files, it lists exactly the package's
// non-test files.
func TestPackageMaps(t *testing.T) {
	maps := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "doc.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !mapLine.Match(text) {
			return err
		}
		maps++
		dir := filepath.Dir(path)
		listed := goFile.FindAllString(string(text), -1)
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		for _, name := range listed {
			if !slices.Contains(files, filepath.Join(dir, name)) {
				t.Errorf("%s lists %s, which does not exist", path, name)
			}
		}
		for _, file := range files {
			name := filepath.Base(file)
			if name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_") && !slices.Contains(listed, name) {
				t.Errorf("%s does not list %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if maps == 0 {
		t.Error("no package has a map")
	}
}
