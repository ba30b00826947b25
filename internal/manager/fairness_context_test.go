// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// uncharged lists the functions that may use a context of their own: they only read the cache or
// subscribe to it, before any reconcile.
var uncharged = []string{"../freeze/reader.go Watched", "../restart/config_reader.go follow"}

// TestRequestsAreCharged checks that the packages of namespaced objects pass on the reconcile's
// context, from which the package fairness takes the namespace to charge with an API request.
func TestRequestsAreCharged(t *testing.T) {
	var own []string
	for _, folder := range []string{"../freeze", "../optin", "../podcount", "../restart", "../workload"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && createsContext(f) {
					own = append(own, path+" "+f.Name.Name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(own, uncharged) {
		t.Errorf("with a context of their own are %q, want only %q: requests with it are charged to no namespace", own, uncharged)
	}
}

// createsContext reports whether a function creates a context that has no parent.
func createsContext(f *ast.FuncDecl) (creates bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "context" && (s.Sel.Name == "Background" || s.Sel.Name == "TODO") {
				creates = true
			}
		}
		return true
	})
	return creates
}
