// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"strings"
	"testing"
)

// paths is a set of field paths. Each path begins with a kind, as in Pod.Spec.Containers.Name. A
// kind alone is the path of an entire object.
type paths map[string]bool

// read is a field path that the functions of a package read.
type read struct{ pkg, path string }

// reads finds the fields of Pods and Nodes that functions read. It follows each object and its
// parts through variables, arguments, results, struct fields and function literals. It starts to
// follow a function when a followed function mentions the function itself, a variable that holds
// it, or its receiver type. Code of other modules is not followed, except component-helpers: if a
// value is passed to such code, only the argument's path counts as read.
type reads struct {
	files *token.FileSet
	info  types.Info
	// bodies maps each function to its declaration, and each package variable to its initial value.
	bodies  map[types.Object]ast.Node
	methods map[types.Object][]*types.Func
	// reached lists the functions and variables whose bodies are followed, in order of discovery.
	reached []types.Object
	known   map[types.Object]bool
	// follows is the set of packages whose functions are followed.
	follows map[*types.Package]bool
	// of maps each variable, including parameters and results, to the paths that it may hold.
	of map[types.Object]paths
	// at maps each read to a source position. grown is true if the current round has found new
	// paths or functions.
	at    map[read]string
	grown bool
}

// readsOf returns the fields that a function and all functions reachable from it read, each with a
// source position. If source is not empty, it is the source code of an additional package that
// contains the function.
func readsOf(t *testing.T, pkg, function, source string) map[read]string {
	t.Helper()
	r := &reads{
		files: token.NewFileSet(), bodies: map[types.Object]ast.Node{}, methods: map[types.Object][]*types.Func{},
		info:  types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{}},
		known: map[types.Object]bool{}, follows: map[*types.Package]bool{}, of: map[types.Object]paths{}, at: map[read]string{},
	}
	packages := r.load(t, source)
	root := packages[pkg].Scope().Lookup(function)
	r.reach(root)
	for r.grown = true; r.grown; {
		r.grown = false
		for _, o := range r.reached {
			if body := r.bodies[o]; body != nil {
				r.follow(o, body)
			}
		}
	}
	return r.at
}

// reach makes the analysis follow a function, a variable, or the methods of a type.
func (r *reads) reach(o types.Object) {
	if f, ok := o.(*types.Func); ok {
		o = f.Origin()
	}
	if o == nil || r.known[o] || r.bodies[o] == nil && r.methods[o] == nil {
		return
	}
	r.known[o], r.grown = true, true
	r.reached = append(r.reached, o)
	for _, method := range r.methods[o] {
		r.reach(method)
	}
}

// add adds paths to a variable of a followed package. It ignores variables of basic types.
func (r *reads) add(o types.Object, more paths) {
	if o == nil || o.Pkg() == nil || !r.follows[o.Pkg()] {
		return
	}
	for path := range more {
		if _, basic := o.Type().Underlying().(*types.Basic); basic || r.of[o][path] {
			continue
		}
		if r.of[o] == nil {
			r.of[o] = paths{}
		}
		r.of[o][path], r.grown = true, true
	}
}

// follow records the fields that a function, or the initial value of a package variable, reads.
func (r *reads) follow(of types.Object, body ast.Node) {
	written := map[ast.Expr]bool{}
	ast.PreorderStack(body, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			r.reach(r.info.Uses[n])
		case *ast.SelectorExpr:
			for path := range r.pathsOf(n) {
				if !written[n] {
					r.at[read{of.Pkg().Path(), path}] = r.files.Position(n.Pos()).String()
				}
			}
		case *ast.CallExpr:
			r.call(n)
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if n.Tok == token.ASSIGN {
					written[left] = true
				}
				r.assign(left, r.valueOf(n.Rhs, i))
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				r.add(r.info.Defs[name], r.valueOf(n.Values, i))
			}
		case *ast.RangeStmt:
			if n.Value != nil {
				r.assign(n.Value, r.pathsOf(n.X))
			}
		case *ast.CompositeLit:
			r.literal(n)
		case *ast.TypeSwitchStmt:
			r.typeSwitch(n)
		case *ast.SendStmt:
			r.assign(n.Chan, r.pathsOf(n.Value))
		case *ast.ReturnStmt:
			signature, _ := of.Type().(*types.Signature)
			for _, outer := range stack {
				if literal, ok := outer.(*ast.FuncLit); ok {
					signature = r.info.Types[literal].Type.(*types.Signature)
				}
			}
			for i := range signature.Results().Len() {
				if len(n.Results) > 0 { // a bare return returns named results, whose assignments are followed
					r.add(signature.Results().At(i), r.valueOf(n.Results, i))
				}
			}
		}
		return true
	})
}

// valueOf returns the paths of the i-th value in a list of expressions. If the list is a single
// call, these are the paths of the call's i-th result.
func (r *reads) valueOf(values []ast.Expr, i int) paths {
	if i < len(values) && (i > 0 || len(values) > 1) {
		return r.pathsOf(values[i])
	}
	if len(values) != 1 {
		return nil
	}
	if call, ok := ast.Unparen(values[0]).(*ast.CallExpr); ok && i > 0 {
		return r.resultOf(call, i)
	}
	if i > 0 {
		return nil // the second value is the ok of a map access or type assertion
	}
	return r.pathsOf(values[0])
}

// assign records that an expression may hold the objects or fields at further paths. The expression
// is a variable, or a struct field declared in a followed package.
func (r *reads) assign(left ast.Expr, more paths) {
	switch left := ast.Unparen(left).(type) {
	case *ast.Ident:
		r.add(r.variable(left), more)
	case *ast.SelectorExpr:
		if s := r.info.Selections[left]; s != nil && s.Kind() == types.FieldVal && len(r.pathsOf(left.X)) == 0 {
			r.add(s.Obj(), more)
		}
	case *ast.IndexExpr:
		r.assign(left.X, more)
	case *ast.StarExpr:
		r.assign(left.X, more)
	}
}

// variable returns the variable that a name declares or uses.
func (r *reads) variable(name *ast.Ident) types.Object {
	if o := r.info.Defs[name]; o != nil {
		return o
	}
	return r.info.Uses[name]
}

// literal adds the paths of a struct literal's values to the struct's fields.
func (r *reads) literal(n *ast.CompositeLit) {
	of, ok := pointee(r.info.Types[n].Type).Underlying().(*types.Struct)
	if !ok || objectKind(r.info.Types[n].Type) != "" {
		return
	}
	for i, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			r.add(r.info.Uses[pair.Key.(*ast.Ident)], r.pathsOf(pair.Value))
		} else {
			r.add(of.Field(i), r.pathsOf(element))
		}
	}
}

// typeSwitch adds the paths of the switched value to each clause's variable.
func (r *reads) typeSwitch(n *ast.TypeSwitchStmt) {
	assign, ok := n.Assign.(*ast.AssignStmt)
	if !ok {
		return
	}
	for _, clause := range n.Body.List {
		r.add(r.info.Implicits[clause], r.pathsOf(assign.Rhs[0]))
	}
}

// pathsOf returns the paths that an expression may hold.
func (r *reads) pathsOf(e ast.Expr) paths {
	if kind := objectKind(r.info.Types[e].Type); kind != "" {
		return paths{kind: true}
	}
	switch e := e.(type) {
	case *ast.Ident:
		return r.of[r.variable(e)]
	case *ast.ParenExpr:
		return r.pathsOf(e.X)
	case *ast.StarExpr:
		return r.pathsOf(e.X)
	case *ast.UnaryExpr:
		return r.pathsOf(e.X)
	case *ast.SliceExpr:
		return r.pathsOf(e.X)
	case *ast.IndexExpr:
		return r.pathsOf(e.X)
	case *ast.TypeAssertExpr:
		return r.pathsOf(e.X)
	case *ast.SelectorExpr:
		return r.selected(e)
	case *ast.CallExpr:
		return r.returned(e)
	case *ast.CompositeLit:
		return r.elements(e)
	}
	return nil
}

// elements returns the paths of the elements in a list or map literal.
func (r *reads) elements(e *ast.CompositeLit) (found paths) {
	if _, isStruct := pointee(r.info.Types[e].Type).Underlying().(*types.Struct); isStruct {
		return nil
	}
	for _, element := range e.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		found = union(found, r.pathsOf(element))
	}
	return found
}

// selected returns the paths of a field selector, or of the field that a metadata getter returns.
func (r *reads) selected(e *ast.SelectorExpr) paths {
	s := r.info.Selections[e]
	if s == nil {
		return r.of[r.info.Uses[e.Sel]]
	}
	base, found := r.pathsOf(e.X), paths{}
	if s.Kind() != types.FieldVal {
		if name, isGetter := strings.CutPrefix(e.Sel.Name, "Get"); isGetter && r.bodies[s.Obj()] == nil && metadataHas(name) {
			for path := range base {
				found[strings.TrimSuffix(path, ".ObjectMeta")+".ObjectMeta."+name] = true
			}
		}
		return found
	}
	suffix, of := "", s.Recv()
	for _, i := range s.Index() {
		if kind := objectKind(of); kind != "" {
			base, suffix = paths{kind: true}, "" // embedded object
		}
		field := pointee(of).Underlying().(*types.Struct).Field(i)
		suffix, of = suffix+"."+field.Name(), field.Type()
	}
	for path := range base {
		// An interface may hold objects of several kinds, of which a type assertion selects one.
		// Skip the paths of the other kinds.
		if strings.Contains(path, ".") || objectKind(s.Recv()) != "" {
			found[path+suffix] = true
		}
	}
	return union(found, r.of[s.Obj()])
}

func union(a, b paths) paths {
	all := maps.Clone(a)
	if all == nil {
		all = paths{}
	}
	maps.Copy(all, b)
	return all
}
