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
	// maxTogether is the maximum number of methods of a type together with the types of its package
	// that embed a pointer to it, because embedding divides nothing. Lower it when possible.
	maxTogether = 26
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

// TestEmbeddingDividesNothing checks that no type and the types that embed a pointer to it exceed
// maxTogether. Parts of a type should have a named field for the state that they share.
func TestEmbeddingDividesNothing(t *testing.T) {
	folders := []string{"api/", "cmd/", "internal/", "sandbox/client/", "sandbox/cmd/", "sandbox/internal/"}
	sizes := sizesOfTypes(t, root, folders...)
	embedding := embeddersOf(t, root, folders...)
	if len(embedding) < 10 {
		t.Fatalf("%d types are embedded: the tree is not found", len(embedding))
	}
	for _, name := range slices.Sorted(maps.Keys(embedding)) {
		together := sizes[name].methods
		for _, embedder := range embedding[name] {
			together += sizes[embedder].methods
		}
		if sizes[name].methods > 0 && together > maxTogether {
			t.Errorf("%s, embedded in %q, has %d methods together with them, want at most %d: give the parts a named field", name, embedding[name], together, maxTogether)
		}
	}
}

// embeddersOf maps each type to the types of the same package that embed a pointer to it, with the
// keys of sizesOfTypes.
func embeddersOf(t *testing.T, root string, folders ...string) map[string][]string {
	t.Helper()
	embedding := map[string][]string{}
	eachSource(t, root, folders, func(file string, parsed *ast.File) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				if pointer, ok := field.Type.(*ast.StarExpr); ok && len(field.Names) == 0 {
					if embedded, ok := pointer.X.(*ast.Ident); ok {
						key := filepath.Dir(file) + "." + embedded.Name
						embedding[key] = append(embedding[key], filepath.Dir(file)+"."+spec.Name.Name)
					}
				}
			}
			return true
		})
	})
	return embedding
}

// eachSource parses the source files in the given folders, without tests and generated code.
func eachSource(t *testing.T, root string, folders []string, do func(file string, parsed *ast.File)) {
	t.Helper()
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || isExempt(file) || !hasPrefix(file, folders) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		do(file, parsed)
	}
}

// sizesOfTypes returns the sizes of the types with methods in the given folders, keyed by folder
// and name.
func sizesOfTypes(t *testing.T, root string, folders ...string) map[string]size {
	t.Helper()
	sizes := map[string]size{}
	eachSource(t, root, folders, func(file string, parsed *ast.File) {
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
	})
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
