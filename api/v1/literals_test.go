// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// apiFiles are the files of this package whose string constants must not be
// repeated elsewhere.
var apiFiles = []string{"conditions.go", "nodepool_conditions.go", "optin_events.go", "scheduledrestart_annotations.go", "scheduledrestart_conditions.go"}

// elsewhere are words of other APIs that happen to be equal, by file.
var elsewhere = map[string][]string{
	// The reason of a condition of Deployments.
	"internal/workload/deployment.go": {"ProgressDeadlineExceeded"},
	// A transition of a pod.
	"internal/pods/podwatch/transition.go": {"Deleting"},
}

// Users' alerts and scripts depend on these words, so that each is written once in
// the product. Tests may write them again: that is how a change of one is noticed.
func TestAPIWordsAreConstants(t *testing.T) {
	words := map[string]bool{}
	for _, file := range apiFiles {
		for _, literal := range literals(t, file) {
			words[literal] = true
		}
	}
	const root = "../.."
	for _, folder := range []string{"cmd", "internal", "hack"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, literal := range literals(t, path) {
				if words[literal] && !slices.Contains(elsewhere[filepath.ToSlash(name)], literal) {
					t.Errorf("%s: use the constant of api/v1 for %q", name, literal)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// literals returns the words in the string literals of a Go file.
func literals(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec, *ast.Field:
			// Struct tags and paths of packages are not words.
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && text != "" {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}
