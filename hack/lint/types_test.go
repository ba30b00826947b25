// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Limits for the methods of a type. A type that exceeds them has several responsibilities, which
// could be separate types with their own fields.
const (
	maxMethods     = 20
	maxMethodFiles = 4
)

// size counts a type's methods, and the files that contain them.
type size struct{ methods, files int }

// TestTypesAreSmall checks that no type exceeds maxMethods and maxMethodFiles.
func TestTypesAreSmall(t *testing.T) {
	sizes := sizesOfTypes(t, root, "api/", "cmd/", "internal/", "sandbox/client/", "sandbox/cmd/", "sandbox/internal/")
	if len(sizes) < 300 {
		t.Fatalf("%d types have methods: the tree is not found", len(sizes))
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if s := sizes[name]; s.methods > maxMethods || s.files > maxMethodFiles {
			t.Errorf("%s has %d methods in %d files, want at most %d in %d: make types that own a part of its fields", name, s.methods, s.files, maxMethods, maxMethodFiles)
		}
	}
}

// sizesOfTypes returns the sizes of the types with methods in the given folders, keyed by folder
// and name.
func sizesOfTypes(t *testing.T, root string, folders ...string) map[string]size {
	t.Helper()
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]size{}
	for _, file := range files {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || isExempt(file) || !hasPrefix(file, folders) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		inFile := map[string]int{}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
				inFile[filepath.Dir(file)+"."+receiver(f)]++
			}
		}
		for name, methods := range inFile {
			s := sizes[name]
			sizes[name] = size{s.methods + methods, s.files + 1}
		}
	}
	return sizes
}

// receiver returns the name of a method's receiver type.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch expr := of.(type) {
		case *ast.StarExpr:
			of = expr.X
		case *ast.IndexExpr:
			of = expr.X
		case *ast.IndexListExpr:
			of = expr.X
		case *ast.Ident:
			return expr.Name
		default:
			return ""
		}
	}
}
