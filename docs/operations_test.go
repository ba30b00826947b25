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

// operations.md says of each reason of a condition, a tick or an event what to do,
// and of no other.
func TestOperationsHaveAllReasons(t *testing.T) {
	text, err := os.ReadFile("operations.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|.*\\| [^|]+ \\|$")
	for _, s := range []struct{ heading, folder, prefix string }{
		{"Reasons of a NodePool", "nodepool", "Reason"},
		{"Events of a NodePool", "nodepool", "Event"},
		{"Reasons of a ScheduledRestart", "restart", "Reason"},
		{"Events of a ScheduledRestart", "restart", "Event"},
		{"Events of a workload with the opt-in", "optin", "Event"},
	} {
		_, section, _ := strings.Cut(string(text), "\n## "+s.heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var told []string
		for _, match := range row.FindAllStringSubmatch(section, -1) {
			told = append(told, match[1])
		}
		constants := constantsOf(t, filepath.Join(root, "internal", s.folder, "observability.go"), s.prefix)
		if len(constants) == 0 {
			t.Errorf("%s has no constants %s…", s.folder, s.prefix)
		}
		for _, reason := range constants {
			if !slices.Contains(told, reason) {
				t.Errorf("%q does not say what to do about %s", s.heading, reason)
			}
		}
		for _, reason := range told {
			if !slices.Contains(constants, reason) {
				t.Errorf("%q tells of %s, which there is not", s.heading, reason)
			}
		}
	}
}

// constantsOf returns the texts of a file's constants whose names begin so.
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
