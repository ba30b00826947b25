// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// load type-checks the packages of this module and of component-helpers that the manager imports.
// It returns them keyed by import path.
func (r *reads) load(t *testing.T, source string) map[string]*types.Package {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, checked := map[string]string{}, map[string]*types.Package{}
	compiled := importer.ForCompiler(r.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	check := func(path string, files []*ast.File, follow bool) {
		config := types.Config{Importer: importing(func(path string) (*types.Package, error) {
			if pkg := checked[path]; pkg != nil {
				return pkg, nil
			}
			return compiled.Import(path)
		})}
		if checked[path], err = config.Check(path, r.files, files, &r.info); err != nil {
			t.Fatal(err)
		}
		if !follow {
			return
		}
		r.follows[checked[path]] = true
		for _, file := range files {
			r.declare(file)
		}
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		follow, isOurs := followed(pkg.ImportPath)
		if exports[pkg.ImportPath] = pkg.Export; !follow && !isOurs {
			continue
		}
		var files []*ast.File
		for _, name := range pkg.GoFiles {
			file, err := parser.ParseFile(r.files, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		check(pkg.ImportPath, files, follow)
	}
	if source != "" {
		file, err := parser.ParseFile(r.files, "source.go", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		check(file.Name.Name, []*ast.File{file}, true)
	}
	return checked
}

// followed reports whether the analysis follows the functions of a package, and whether the package
// belongs to this module. The analysis does not follow the cache's packages, because they handle
// records instead of pods. It type-checks them nevertheless, because followed packages use their
// types.
func followed(path string) (follow, isOurs bool) {
	ours, isOurs := strings.CutPrefix(path, "tidekeeper.dev/tidekeeper/")
	return isOurs && !strings.HasPrefix(ours, "internal/cache/") || strings.HasPrefix(path, "k8s.io/component-helpers/"), isOurs
}

// importing adapts a function to the interface [types.Importer].
type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }

// declare adds a file's function bodies and initial values of variables to bodies.
func (r *reads) declare(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f := r.info.Defs[d.Name].(*types.Func)
			r.bodies[f] = d
			if receiver := f.Signature().Recv(); receiver != nil {
				if named, ok := pointee(receiver.Type()).(*types.Named); ok {
					r.methods[named.Origin().Obj()] = append(r.methods[named.Origin().Obj()], f)
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range spec.Names {
						r.bodies[r.info.Defs[name]] = spec
					}
				}
			}
		}
	}
}

// pointee returns the type to which a pointer type points, and any other type unchanged.
func pointee(t types.Type) types.Type {
	if t == nil {
		return types.Typ[types.Invalid]
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return types.Unalias(p.Elem())
	}
	return types.Unalias(t)
}

// objectKind returns "Pod" or "Node" if t is that type or a list of it. It returns "" for other
// types.
func objectKind(t types.Type) string {
	t = pointee(t)
	if list, ok := t.(*types.Slice); ok {
		t = pointee(list.Elem())
	}
	switch text := fmt.Sprint(t); text {
	case "k8s.io/api/core/v1.Pod", "k8s.io/api/core/v1.Node":
		return text[strings.LastIndex(text, ".")+1:]
	}
	return ""
}
