// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// sleepReason begins the comment on the line of a sleep of a test that says why it sleeps.
const sleepReason = "// sleep: "

// ofTests are the folders whose files are all of tests, besides those that are named _test.go.
var ofTests = []string{"test/", "sandbox/test/"}

// sleepsOf returns the sleeps in a Go file of tests that do not say why: a test that sleeps fails on
// a machine that is slower than its author thought, and wastes time on all others.
func sleepsOf(file string, files *token.FileSet, parsed *ast.File) []finding {
	if !strings.HasSuffix(file, "_test.go") && !hasPrefix(file, ofTests) {
		return nil
	}
	reasons := map[int]bool{}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			if reason, found := strings.CutPrefix(c.Text, sleepReason); found && strings.TrimSpace(reason) != "" {
				reasons[files.Position(c.Pos()).Line] = true
			}
		}
	}
	var findings []finding
	ast.Inspect(parsed, func(n ast.Node) bool {
		of, isSelector := n.(*ast.SelectorExpr)
		if !isSelector || of.Sel.Name != "Sleep" {
			return true
		}
		if pkg, isName := of.X.(*ast.Ident); !isName || pkg.Name != "time" {
			return true
		}
		if line := files.Position(of.Pos()).Line; !reasons[line] {
			findings = append(findings, finding{
				file: file, line: line, text: "time.Sleep",
				say: `what is waited for, as a condition, or on its line why there is none: "` + sleepReason + `…"`,
			})
		}
		return true
	})
	return findings
}
