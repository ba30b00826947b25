// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// rule holds the fields and constants mentioned in a CEL rule.
type rule struct {
	fields    map[string]bool
	constants []any
}

// rulesOf parses the CEL rules in a schema. It skips invalid rules, which the API server reports.
func rulesOf(s *Schema) []rule {
	var rules []rule
	environment, err := cel.NewEnv()
	if err != nil {
		return nil
	}
	for _, validation := range s.XValidations {
		tree, issues := environment.Parse(validation.Rule)
		if issues.Err() != nil {
			continue
		}
		r := rule{fields: map[string]bool{}}
		ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) { r.visit(e) }))
		rules = append(rules, r)
	}
	return rules
}

func (r *rule) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		r.fields[e.AsSelect().FieldName()] = true
	case ast.LiteralKind:
		switch constant := e.AsLiteral().Value().(type) {
		case int64, string, float64:
			r.constants = append(r.constants, constant)
		case uint64:
			r.constants = append(r.constants, int64(constant))
		}
	case ast.CallKind:
		// The CEL parser represents -5 as a call of the negation operator, not as a constant.
		call := e.AsCall()
		if call.FunctionName() == operators.Negate && len(call.Args()) == 1 && call.Args()[0].Kind() == ast.LiteralKind {
			if number, is := call.Args()[0].AsLiteral().Value().(int64); is {
				r.constants = append(r.constants, -number)
			}
		}
	}
}

// fromRules returns the constants in CEL rules as values and, for an integer, also the integers
// next to it. `own` lists the rules of the property itself. `around` lists the rules of enclosing
// objects; of these, only rules that mention the property are used.
func fromRules(own, around []rule, name string, now any) []value {
	var values []value
	add := func(r rule) {
		for _, constant := range r.constants {
			switch now.(type) {
			case int64:
				if n, is := constant.(int64); is {
					for _, v := range []int64{n - 1, n, n + 1} {
						values = append(values, value{Limit, fmt.Sprintf("%d, as a rule has %d", v, n), v})
					}
				}
			case string:
				if text, is := constant.(string); is {
					values = append(values, value{Limit, fmt.Sprintf("%.40q, as in a rule", text), text})
				}
			}
		}
	}
	for _, r := range own {
		add(r)
	}
	for _, r := range around {
		if r.fields[name] {
			add(r)
		}
	}
	return values
}
