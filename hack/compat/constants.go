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

// constantsOf returns the exported constants of a Go file that are literals of the given kind, as a
// map of names to values in text form.
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

// nouns maps name prefixes of API constants to the noun under which the surface lists the
// constants.
var nouns = map[string]string{"Reason": "reason", "Event": "event", "Condition": "condition", "Outcome": "outcome"}

// owners maps file name prefixes to the object kind whose constants are in these files.
var owners = map[string]string{"nodepool_": "NodePool ", "scheduledrestart_": "ScheduledRestart ", "freeze_": "Freeze ", "optin_": "workload "}

// addConstants adds the strings that the manager writes to objects: reasons, events, conditions,
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

// addExitCodes adds the exit codes of a program, which a file defines as constants.
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
