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
	mapLine = regexp.MustCompile(`(?m)^//\t((?:\w+(?:\.go|/),? ?)+)`)
	bullet  = regexp.MustCompile(`(?m)^//\s+- \w+(?:\.go|/).*`)
	goFile  = regexp.MustCompile(`\b\w+\.go\b`)
	folder  = regexp.MustCompile(`\b\w+/`)
)

// TestPackageMaps checks that if a package comment lists files, it lists exactly the package's
// non-test files, and that if it lists subfolders, it lists all of them. All package comments list
// files as tables.
func TestPackageMaps(t *testing.T) {
	maps := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		comment, _, _ := strings.Cut(string(text), "\npackage ")
		if line := bullet.FindString(comment); line != "" {
			t.Errorf("%s lists files as bullets, want a table: %s", path, line)
		}
		if !mapLine.MatchString(comment) {
			return nil
		}
		maps++
		dir := filepath.Dir(path)
		var inMap []string
		for _, line := range mapLine.FindAllStringSubmatch(comment, -1) {
			for _, name := range folder.FindAllString(line[1], -1) {
				inMap = append(inMap, strings.TrimSuffix(name, "/"))
			}
		}
		if existing := folders(t, dir); len(inMap) > 0 {
			existing = slices.DeleteFunc(existing, func(name string) bool { return name == "test" })
			if slices.Sort(inMap); !slices.Equal(inMap, existing) {
				t.Errorf("%s lists the folders %q, want %q", path, inMap, existing)
			}
		}
		listed := goFile.FindAllString(comment, -1)
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
			if file != path && name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_") && !slices.Contains(listed, name) {
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
