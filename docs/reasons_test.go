// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReasonsAreComplete checks that reference/reasons.md describes how to react to each reason of
// a condition, a tick or an event, and lists no other reasons.
func TestReasonsAreComplete(t *testing.T) {
	text, err := os.ReadFile("reference/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|.*\\| [^|]+ \\|$")
	for _, s := range []struct{ heading, files, prefix string }{
		{"Reasons of a NodePool", "api/v1/nodepool_conditions.go", "Reason"},
		{"Events of a NodePool", "api/v1/nodepool_conditions.go api/v1/conditions.go", "Event"},
		{"Reasons of a ScheduledRestart", "api/v1/scheduledrestart_conditions.go", "Reason"},
		{"Events of a ScheduledRestart", "api/v1/scheduledrestart_conditions.go api/v1/conditions.go", "Event"},
		{"Reasons of a NodeMaintenance", "api/v1/nodemaintenance_conditions.go", "Reason"},
		{"Events of a NodeMaintenance", "api/v1/nodemaintenance_conditions.go", "Event"},
		{"Reasons of a Freeze", "api/v1/freeze_conditions.go", "Reason"},
		{"Events of a Freeze", "api/v1/freeze_conditions.go", "Event"},
		{"Events of a workload with the opt-in", "api/v1/optin_events.go", "Event"},
	} {
		_, section, _ := strings.Cut(string(text), "\n## "+s.heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var documented []string
		for _, match := range row.FindAllStringSubmatch(section, -1) {
			documented = append(documented, match[1])
		}
		var constants []string
		for file := range strings.FieldsSeq(s.files) {
			constants = append(constants, constantsOf(t, filepath.Join(root, file), s.prefix)...)
		}
		if len(constants) == 0 {
			t.Errorf("%s: no constants %s…", s.files, s.prefix)
		}
		for _, reason := range constants {
			if !slices.Contains(documented, reason) {
				t.Errorf("%q does not say what to do about %s", s.heading, reason)
			}
		}
		for _, reason := range documented {
			if !slices.Contains(constants, reason) {
				t.Errorf("%q has %s, which does not exist", s.heading, reason)
			}
		}
	}
}

// constantsOf returns the values of a file's string constants whose names have the given prefix.
func constantsOf(t *testing.T, file, prefix string) (values []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		for _, v := range spec.Values {
			if literal, ok := v.(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
		}
		return true
	})
	return values
}
