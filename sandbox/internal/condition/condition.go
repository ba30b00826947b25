// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition evaluates conditions on objects: expressions in CEL over object and old,
// which is the version before, or null.
package condition

import (
	"fmt"
	"maps"
	"strings"

	"github.com/google/cel-go/cel"
)

// Condition is an expression that was compiled.
type Condition struct {
	program cel.Program
	// Old: it mentions the version before.
	Old bool
}

// Compile compiles an expression, whose type must be bool or not known before it is
// evaluated. It may have more variables, which HoldsWith is given.
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

// Holds evaluates the condition; object and old may be nil, which is null. A condition that cannot
// be evaluated, such as for a missing field, is false, for the returned reason.
func (c *Condition) Holds(object, old map[string]any) (bool, string) {
	return c.HoldsWith(object, old, nil)
}

// HoldsWith is Holds with the values of more variables. A value that is a func() any is called if
// the expression needs it.
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
