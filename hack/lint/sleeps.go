// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// sleepReason is the beginning of a comment that explains a sleep in a test. The comment must be on
// the line of the sleep.
const sleepReason = "// sleep: "

// ofTests lists folders whose Go files all count as tests, regardless of the suffix _test.go.
var ofTests = []string{"test/", "sandbox/test/"}

// sleepsOf returns the unexplained sleeps in a Go file that contains tests. A test that sleeps
// fails on machines that are slower than its author expected, and wastes time on all others.
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
