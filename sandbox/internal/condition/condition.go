// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition evaluates conditions on objects. A condition is a CEL expression over the
// variables "object" and "old", where "old" is the object's previous version or null.
package condition

import (
	"fmt"
	"maps"
	"strings"

	"github.com/google/cel-go/cel"
)

// Condition is a compiled CEL expression.
type Condition struct {
	program cel.Program
	// Old is set if the expression uses the variable "old".
	Old bool
}

// Compile compiles an expression whose type is bool or dynamic. The parameter "more" names
// additional variables, whose values must be passed to HoldsWith.
func Compile(text string, more ...string) (*Condition, error) {
	variables := []cel.EnvOption{cel.Variable("object", cel.DynType), cel.Variable("old", cel.DynType)}
	for _, name := range more {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	environment, err := cel.NewEnv(variables...)
	if err != nil {
		return nil, err
	}
	ast, issues := environment.Compile(text)
	if issues.Err() != nil {
		var mistakes []string
		for _, e := range issues.Errors() {
			mistakes = append(mistakes, fmt.Sprintf("%s (line %d, column %d)", e.Message, e.Location.Line(), e.Location.Column()+1))
		}
		return nil, fmt.Errorf("%q is not an expression in CEL: %s", text, strings.Join(mistakes, "; "))
	}
	if ast.OutputType() != cel.BoolType && ast.OutputType() != cel.DynType {
		return nil, fmt.Errorf("%q is not true or false, but a %s", text, ast.OutputType())
	}
	program, err := environment.Program(ast)
	if err != nil {
		return nil, err
	}
	c := &Condition{program: program}
	for _, mentioned := range ast.NativeRep().ReferenceMap() {
		c.Old = c.Old || mentioned.Name == "old"
	}
	return c, nil
}

// Holds evaluates the condition for an object and its previous version "old". If either is nil, its
// variable is null in the expression. If the evaluation fails, for example because of a missing
// field, Holds returns false and the reason.
func (c *Condition) Holds(object, old map[string]any) (bool, string) {
	return c.HoldsWith(object, old, nil)
}

// HoldsWith evaluates the condition as Holds does, with additional variables, keyed by name. If a
// value has the type func() any, it is called when the expression uses the variable.
func (c *Condition) HoldsWith(object, old, more map[string]any) (bool, string) {
	arguments := map[string]any{"object": nil, "old": nil}
	maps.Copy(arguments, more)
	if object != nil {
		arguments["object"] = object
	}
	if old != nil {
		arguments["old"] = old
	}
	value, _, err := c.program.Eval(arguments)
	if err != nil {
		return false, err.Error()
	}
	result, is := value.Value().(bool)
	if !is {
		return false, fmt.Sprintf("it is %v, and not true or false", value.Value())
	}
	return result, ""
}
