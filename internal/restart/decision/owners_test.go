// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// sources holds the positions in the parsed files.
var sources = token.NewFileSet()

// TestOwnersOfStatusFields checks that each field of the status and of status.active is written
// only by the methods of a single type, so that the type can be understood and tested alone.
func TestOwnersOfStatusFields(t *testing.T) {
	owners := writersOf(t, parsePackage(t, "."))
	for field := range reflect.TypeFor[tidekeeperv1.ScheduledRestartStatus]().Fields() {
		if got := owners["ScheduledRestartStatus."+field.Name]; len(got) != 1 {
			t.Errorf("status.%s is written by %v, want one type", field.Name, got)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[tidekeeperv1.ActiveRestart](), reflect.TypeFor[tidekeeperv1.ActiveEviction]()} {
		for field := range of.Fields() {
			// A claim sets all fields of status.active together, so some of them are never written
			// individually.
			if got := owners[of.Name()+"."+field.Name]; len(got) > 0 && !slices.Equal(got, owners["ScheduledRestartStatus.Active"]) {
				t.Errorf("%s of the %s in the status is written by %v, want %v alone", field.Name, of.Name(), got, owners["ScheduledRestartStatus.Active"])
			}
		}
	}
}

// TestOwnersAreSeen checks that a write to status.active is detected regardless of the expression
// that leads to it, and that a write to a copy of the status is ignored.
func TestOwnersAreSeen(t *testing.T) {
	bodies := map[string]string{
		"e.state.status.Active = nil":                                        "ScheduledRestartStatus.Active",
		"status := e.state.status; status.Active = nil":                      "ScheduledRestartStatus.Active",
		"active := e.state.status.Active; active.ConfigHash = \"\"":          "ActiveRestart.ConfigHash",
		"e.state.status.Active.Eviction.Refused = \"\"":                      "ActiveEviction.Refused",
		"n := &e.state.status.ConsecutiveMisses; *n = 0":                     "ScheduledRestartStatus.ConsecutiveMisses",
		"e.state.status.ConsecutiveMisses++":                                 "ScheduledRestartStatus.ConsecutiveMisses",
		"*e.state.status.Active = tidekeeperv1.ActiveRestart{}":              "ActiveRestart.*",
		"e.state.status.Active.StartedTime.Time = e.state.now":               "ActiveRestart.StartedTime",
		"status := *e.state.status; status.Active = nil; _ = e.state.status": "",
		"_ = e.state.status.Active.ConfigHash":                               "",
	}
	source, bodyOf := "package decision\n\nimport tidekeeperv1 \"tidekeeper.dev/tidekeeper/api/v1\"\n", map[string]string{}
	for body := range bodies {
		name := fmt.Sprintf("second%d", len(bodyOf))
		bodyOf[name] = body
		source += "type " + name + " struct{ state *state }\nfunc (e *" + name + ") write() { " + body + " }\n"
	}
	file, err := parser.ParseFile(sources, "second.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string][]string{}
	for field, owners := range writersOf(t, append(parsePackage(t, "."), file)) {
		for _, owner := range owners {
			written[owner] = append(written[owner], field)
		}
	}
	for name, body := range bodyOf {
		if got := strings.Join(written[name], " "); got != bodies[body] {
			t.Errorf("%s: writes to %q are seen, want %q", body, got, bodies[body])
		}
	}
}

// parsePackage parses the files of the package in the given folder, except tests.
func parsePackage(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(sources, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatalf("no package in %s", folder)
	}
	return files
}

// apiOnly is an importer of the API package alone, which is sufficient because all written fields
// have types from the API package.
type apiOnly struct{ api *types.Package }

func (i apiOnly) Import(path string) (*types.Package, error) {
	if i.api != nil && path == i.api.Path() {
		return i.api, nil
	}
	return nil, errors.New("not imported")
}

// typesOf type-checks a package. It ignores errors, since most of the package's imports cannot be
// resolved.
func typesOf(path string, importer types.Importer, files []*ast.File, info *types.Info) *types.Package {
	config := types.Config{Importer: importer, Error: func(error) {}}
	pkg, _ := config.Check(path, sources, files, info)
	return pkg
}

// writersOf maps each field of the status to the types whose methods write the field or take its
// address. A function without a receiver counts as a type with the function's name.
func writersOf(t *testing.T, files []*ast.File) map[string][]string {
	t.Helper()
	api := reflect.TypeFor[tidekeeperv1.ScheduledRestart]().PkgPath()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	typesOf("decision", apiOnly{typesOf(api, apiOnly{}, parsePackage(t, "../../../api/v1"), nil)}, files, info)
	found := map[string]map[string]bool{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, field := range writtenFields(info, function.Body) {
				if found[field] == nil {
					found[field] = map[string]bool{}
				}
				found[field][ownerOf(function)] = true
			}
		}
	}
	owners := map[string][]string{}
	for field, names := range found {
		owners[field] = slices.Sorted(maps.Keys(names))
	}
	return owners
}

// ownerOf returns the receiver type of a method, or the name of a function.
func ownerOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	return receiver.(*ast.Ident).Name
}

// writtenFields returns the fields of the status that a function writes or takes the address of.
func writtenFields(info *types.Info, body *ast.BlockStmt) (fields []string) {
	note := func(e ast.Expr) { fields = append(fields, fieldsIn(info, e)...) }
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

// fieldsIn returns the field of the status that an expression denotes or is a part of.
func fieldsIn(info *types.Info, e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.StarExpr:
		if name := tracked(info.Types[e].Type); name != "" {
			return []string{name + ".*"}
		}
	case *ast.SelectorExpr:
		if name := tracked(info.Types[e.X].Type); name != "" && !isCopy(info, e.X) {
			return []string{name + "." + e.Sel.Name}
		}
		if _, pointer := info.Types[e.X].Type.(*types.Pointer); !pointer {
			return fieldsIn(info, e.X)
		}
	}
	return nil
}

// tracked returns the name of the given type if it is the status or a part of the status; ""
// otherwise.
func tracked(of types.Type) string {
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	named, ok := of.(*types.Named)
	if !ok || !slices.Contains([]string{"ScheduledRestartStatus", "ActiveRestart", "ActiveEviction"}, named.Obj().Name()) {
		return ""
	}
	return named.Obj().Name()
}

// isCopy reports whether an expression is a variable that holds a value instead of a pointer.
func isCopy(info *types.Info, e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	_, pointer := info.Types[e].Type.(*types.Pointer)
	variable, isVariable := info.Uses[name].(*types.Var)
	return isVariable && !pointer && !variable.IsField()
}
