// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"go/ast"
	"go/types"
	"slices"
)

// callee returns the function that a call names. It returns nil if the call names none.
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

// called returns the signatures of a call's possible targets: the function or function literal or,
// for an interface's method, the matching methods in the followed packages.
func (r *reads) called(call *ast.CallExpr) (all []*types.Signature) {
	f, named := r.callee(call).(*types.Func)
	signature, _ := r.info.Types[call.Fun].Type.(*types.Signature)
	if named {
		// Use the generic signature, because the signature of an instance has different parameter
		// objects.
		signature = f.Signature()
	}
	if named && signature.Recv() != nil && types.IsInterface(signature.Recv().Type()) {
		for body := range r.bodies {
			if method, ok := body.(*types.Func); ok && method.Name() == f.Name() && types.Identical(method.Type(), f.Type()) {
				all = append(all, method.Signature())
			}
		}
	}
	if signature != nil {
		all = append(all, signature)
	}
	return all
}

// call adds the paths of a call's arguments to the parameters of the called function. If an
// argument is a callback, as in slices.ContainsFunc, the paths of the other arguments are also
// added to those parameters of the callback that have the same type or the type of the elements.
func (r *reads) call(call *ast.CallExpr) {
	for _, signature := range r.called(call) {
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
		callback, ok := r.info.Types[argument].Type.(*types.Signature)
		for i := 0; ok && i < callback.Params().Len(); i++ {
			for _, given := range call.Args {
				if of := r.info.Types[given].Type; related(of, callback.Params().At(i).Type()) {
					r.add(callback.Params().At(i), r.pathsOf(given))
				}
			}
		}
	}
}

// resultOf returns the paths of a call's i-th result.
func (r *reads) resultOf(call *ast.CallExpr, i int) (found paths) {
	for _, signature := range r.called(call) {
		if i < signature.Results().Len() {
			found = union(found, r.of[signature.Results().At(i)])
		}
	}
	return found
}

// related reports whether the type part equals the type whole or the type of its elements.
func related(whole, part types.Type) bool {
	switch w := whole.Underlying().(type) {
	case *types.Slice:
		return types.Identical(w.Elem(), part) || types.Identical(whole, part)
	case *types.Map:
		return types.Identical(w.Elem(), part) || types.Identical(whole, part)
	}
	return types.Identical(pointee(whole), pointee(part))
}

// returned returns the paths of a call's first result. A function of another module, such as
// slices.Clone or DeepCopy, is assumed to return its arguments of the same type, their elements, or
// a list of them.
func (r *reads) returned(call *ast.CallExpr) paths {
	found := r.resultOf(call, 0)
	if f := r.callee(call); f != nil && r.bodies[f] != nil {
		return found
	}
	given := call.Args
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		found = union(found, r.selected(selector))
		given = append(slices.Clone(given), selector.X)
	}
	if result := r.info.Types[call].Type; result != nil {
		for _, argument := range given {
			if of := r.info.Types[argument].Type; of != nil && (related(of, result) || related(result, of)) {
				found = union(found, r.pathsOf(argument))
			}
		}
	}
	return found
}
