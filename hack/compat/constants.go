// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// constantsOf returns the exported constants of a Go file that are literals of a kind, by their
// names, as text.
func constantsOf(file string, kind constant.Kind) (map[string]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, declared := range parsed.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, value := range spec.Values {
				literal, ok := value.(*ast.BasicLit)
				if !ok || !spec.Names[i].IsExported() {
					continue
				}
				if v := constant.MakeFromLiteral(literal.Value, literal.Kind, 0); v.Kind() == kind {
					values[spec.Names[i].Name] = fmt.Sprint(constant.Val(v))
				}
			}
		}
	}
	return values, nil
}

// nouns are the prefixes of constants of the API, and the noun that the surface has for them.
var nouns = map[string]string{"Reason": "reason", "Event": "event", "Condition": "condition", "Outcome": "outcome"}

// owners are the prefixes of the files that have constants of one kind only.
var owners = map[string]string{"nodepool_": "NodePool ", "scheduledrestart_": "ScheduledRestart ", "freeze_": "Freeze ", "optin_": "workload "}

// addConstants adds the names that the manager writes into objects: reasons, events, conditions,
// annotations, labels and finalizers.
func (s surface) addConstants(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "zz_") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		values, err := constantsOf(file, constant.String)
		if err != nil {
			return err
		}
		owner := ""
		for prefix, kind := range owners {
			if strings.HasPrefix(filepath.Base(file), prefix) {
				owner = kind
			}
		}
		for name, value := range values {
			noun := "name"
			for prefix, n := range nouns {
				if strings.HasPrefix(name, prefix) {
					noun = n
				}
			}
			s[noun+" "+owner+value] = thing{}
		}
	}
	return nil
}

// addExitCodes adds the exit codes that a file has as constants.
func (s surface) addExitCodes(program, file string) error {
	values, err := constantsOf(file, constant.Int)
	if err != nil {
		return err
	}
	found := false
	for name, value := range values {
		if meaning, ok := strings.CutPrefix(name, "Exit"); ok {
			found = true
			s["exit code "+program+" "+meaning] = thing{Default: value}
		}
	}
	if !found {
		return fmt.Errorf("%s has no exit codes", file)
	}
	return nil
}
