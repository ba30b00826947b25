// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// shared are the fields of the status with more owners than one: a restart is claimed, and ends.
var shared = map[string][]string{"Active": {"ending", "launcher"}}

// Each field of the status is written by the methods of one type. So a type can be read, and tested,
// without the others.
func TestOwnersOfStatusFields(t *testing.T) {
	owners := map[string]map[string]bool{}
	for _, file := range productFiles(t) {
		for _, declaration := range file.Decls {
			method, ok := declaration.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			star, ok := method.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			owner := star.X.(*ast.Ident).Name
			for _, field := range writtenFields(method.Body) {
				if owners[field] == nil {
					owners[field] = map[string]bool{}
				}
				owners[field][owner] = true
			}
		}
	}
	for field := range reflect.TypeFor[tidekeeperv1.ScheduledRestartStatus]().Fields() {
		want, got := shared[field.Name], slices.Sorted(maps.Keys(owners[field.Name]))
		if want == nil && len(got) != 1 || want != nil && !slices.Equal(got, want) {
			t.Errorf("status.%s is written by %v, want one type", field.Name, got)
		}
	}
}

// productFiles parses the package without its tests.
func productFiles(t *testing.T) (files []*ast.File) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	return files
}

// writtenFields returns the fields of the status that a function writes, or takes the address of.
func writtenFields(body *ast.BlockStmt) (fields []string) {
	note := func(e ast.Expr) {
		if selector, ok := e.(*ast.SelectorExpr); ok && isStatus(selector.X) {
			fields = append(fields, selector.Sel.Name)
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				note(left)
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				note(n.X)
			}
		}
		return true
	})
	return fields
}

// isStatus reports whether an expression is the next status: status, or x.state.status.
func isStatus(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "status"
	case *ast.SelectorExpr:
		return e.Sel.Name == "status"
	default:
		return false
	}
}
