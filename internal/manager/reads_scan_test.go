// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// paths is a set of fields below a kind, such as Pod.Spec.Containers.Name. The path of the kind alone stands
// for an object.
type paths map[string]bool

// read is a field that a package reads.
type read struct{ pkg, path string }

// reads finds the fields of objects that functions read, by following each Pod and Node, and their parts, through
// variables, arguments, results, fields of structs and function literals. A function is followed once a function
// that is followed mentions the function, its variable or the type of its receiver. Code of other modules is not
// followed, except component-helpers: of what it gets, only the path of the argument counts.
type reads struct {
	files *token.FileSet
	info  types.Info
	// bodies are the functions and the initial values of package variables.
	bodies  map[types.Object]ast.Node
	methods map[types.Object][]*types.Func
	// reached are the objects whose bodies are followed, in this order.
	reached []types.Object
	known   map[types.Object]bool
	// follows are the packages whose functions are followed.
	follows map[*types.Package]bool
	// of are the paths of variables, results are those of functions, by position.
	of      map[types.Object]paths
	results map[types.Object]map[int]paths
	// at is where each field is read, and grown whether a round has found anything new.
	at    map[read]string
	grown bool
}

// readsOf returns the fields that are read from a function of a package on, and where. If source is not empty,
// it is the text of a package of its own with that function.
func readsOf(t *testing.T, pkg, function, source string) map[read]string {
	t.Helper()
	r := &reads{
		files: token.NewFileSet(), bodies: map[types.Object]ast.Node{}, methods: map[types.Object][]*types.Func{},
		info:  types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{}},
		known: map[types.Object]bool{}, follows: map[*types.Package]bool{}, of: map[types.Object]paths{}, results: map[types.Object]map[int]paths{}, at: map[read]string{},
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

// reach follows an object, and the methods of a type.
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

// add adds paths to those of a variable of ours that may have fields.
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

// follow follows the statements of a function, or the initial value of a variable.
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
		case *ast.ReturnStmt:
			inLiteral := slices.ContainsFunc(stack, func(outer ast.Node) bool { _, ok := outer.(*ast.FuncLit); return ok })
			for i := range n.Results {
				if !inLiteral {
					r.result(of, i, r.pathsOf(n.Results[i]))
				}
			}
		}
		return true
	})
}

// result adds paths to those of a result of a function.
func (r *reads) result(of types.Object, i int, more paths) {
	if r.results[of] == nil {
		r.results[of] = map[int]paths{}
	}
	for path := range more {
		if !r.results[of][i][path] {
			r.results[of][i] = union(r.results[of][i], more)
			r.grown = true
		}
	}
}

// valueOf returns the paths of a value of a list, or of a result of the one call that the list has.
func (r *reads) valueOf(values []ast.Expr, i int) paths {
	if i < len(values) && (i > 0 || len(values) > 1) {
		return r.pathsOf(values[i])
	}
	if len(values) != 1 {
		return nil
	}
	if call, ok := ast.Unparen(values[0]).(*ast.CallExpr); ok && i > 0 {
		return r.results[r.callee(call)][i]
	}
	if i > 0 {
		return nil // whether a key exists, or a type is as asserted
	}
	return r.pathsOf(values[0])
}

// assign adds paths to a variable or to a field of a struct of ours.
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
	}
}

// variable returns the variable that a name declares or uses.
func (r *reads) variable(name *ast.Ident) types.Object {
	if o := r.info.Defs[name]; o != nil {
		return o
	}
	return r.info.Uses[name]
}

// literal adds the paths of the fields of a struct of ours.
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

// typeSwitch adds the paths of the switched value to the variable of each clause.
func (r *reads) typeSwitch(n *ast.TypeSwitchStmt) {
	assign, ok := n.Assign.(*ast.AssignStmt)
	if !ok {
		return
	}
	for _, clause := range n.Body.List {
		r.add(r.info.Implicits[clause], r.pathsOf(assign.Rhs[0]))
	}
}

// callee returns the function that a call names, or nil.
func (r *reads) callee(call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	switch generic := fun.(type) {
	case *ast.IndexExpr:
		fun = generic.X
	case *ast.IndexListExpr:
		fun = generic.X
	}
	var name *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun
	case *ast.SelectorExpr:
		name = fun.Sel
	}
	if f, ok := r.info.Uses[name].(*types.Func); ok {
		return f.Origin()
	}
	return nil
}

// call adds the paths of arguments to the parameters of the function that is called, and to those of function
// literals that get the same values or their elements, as of slices.ContainsFunc.
func (r *reads) call(call *ast.CallExpr) {
	f, _ := r.callee(call).(*types.Func)
	if f != nil && r.bodies[f] != nil {
		signature := f.Signature()
		if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && signature.Recv() != nil {
			r.add(signature.Recv(), r.pathsOf(selector.X))
		}
		for i, argument := range call.Args {
			if last := signature.Params().Len() - 1; last >= 0 {
				r.add(signature.Params().At(min(i, last)), r.pathsOf(argument))
			}
		}
	}
	for _, argument := range call.Args {
		literal, ok := argument.(*ast.FuncLit)
		if !ok {
			continue
		}
		for _, field := range literal.Type.Params.List {
			for _, name := range field.Names {
				for _, given := range call.Args {
					if of := r.info.Types[given].Type; related(of, r.info.Defs[name].Type()) {
						r.add(r.info.Defs[name], r.pathsOf(given))
					}
				}
			}
		}
	}
}

// related reports whether a value of a type may be, or have as an element, one of another type.
func related(whole, part types.Type) bool {
	switch w := whole.Underlying().(type) {
	case *types.Slice:
		return types.Identical(w.Elem(), part) || types.Identical(whole, part)
	case *types.Map:
		return types.Identical(w.Elem(), part) || types.Identical(whole, part)
	}
	return types.Identical(pointee(whole), pointee(part))
}

// pathsOf returns the paths of an expression.
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
		return r.called(e)
	}
	return nil
}

// selected returns the paths of a field, or of the field that a getter of the metadata returns.
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
			base, suffix = paths{kind: true}, "" // An object that a struct embeds.
		}
		field := pointee(of).Underlying().(*types.Struct).Field(i)
		suffix, of = suffix+"."+field.Name(), field.Type()
	}
	for path := range base {
		// An interface may hold objects of several kinds, of which a type assertion has chosen another.
		if strings.Contains(path, ".") || objectKind(s.Recv()) != "" {
			found[path+suffix] = true
		}
	}
	return union(found, r.of[s.Obj()])
}

// called returns the paths of the first result of a call. A function of another module, such as slices.Clone or
// DeepCopy, is taken to return what it gets of the same type.
func (r *reads) called(call *ast.CallExpr) paths {
	f := r.callee(call)
	if f != nil && r.bodies[f] != nil {
		return r.results[f][0]
	}
	var found paths
	given := call.Args
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		found = r.selected(selector)
		given = append(slices.Clone(given), selector.X)
	}
	if result := r.info.Types[call].Type; result != nil {
		for _, argument := range given {
			if of := r.info.Types[argument].Type; of != nil && types.Identical(pointee(of), pointee(result)) {
				found = union(found, r.pathsOf(argument))
			}
		}
	}
	return found
}

func union(a, b paths) paths {
	all := maps.Clone(a)
	if all == nil {
		all = paths{}
	}
	maps.Copy(all, b)
	return all
}
