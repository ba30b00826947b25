// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// kitFolder is the folder of the test kit, which must also work as a separate repository.
const kitFolder = "sandbox/"

// kitUsers lists the operator's folders whose files may import the test kit's client.
var kitUsers = []string{"test/", "hack/demo/"}

// mixes returns the reason for which a file may not import a package. It returns "" if the import
// is allowed. The test kit may import no package of the operator. The operator may import only the
// kit's client, and only in tests and the demo.
func mixes(file, pkg string) string {
	kitModule := module + strings.TrimSuffix(kitFolder, "/")
	client := pkg == kitModule+"/client" || strings.HasPrefix(pkg, kitModule+"/client/")
	ofKit := pkg == kitModule || strings.HasPrefix(pkg, kitModule+"/")
	switch {
	case strings.HasPrefix(file, kitFolder):
		if strings.HasPrefix(pkg, module) && !ofKit || pkg+"/" == module {
			return "the kit imports a package of the operator"
		}
	case !ofKit:
	case !client:
		return "the operator imports a package of the kit that is not its client"
	case !hasPrefix(file, kitUsers):
		return "the operator imports the kit's client outside of " + strings.Join(kitUsers, " and ")
	}
	return ""
}

// TestProductsAreApart checks the imports of every module's Go files, regardless of build tags.
func TestProductsAreApart(t *testing.T) {
	used := map[string]bool{}
	for file, source := range contents(t, func(file string) bool { return filepath.Ext(file) == ".go" }) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			pkg, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := mixes(file, pkg); why != "" {
				t.Errorf("%s: %s: %s", file, why, pkg)
			}
			for _, user := range kitUsers {
				used[user] = used[user] || strings.HasPrefix(file, user) && strings.HasPrefix(pkg, module+kitFolder)
			}
		}
	}
	for _, user := range kitUsers {
		if !used[user] {
			t.Errorf("nothing in %s imports the kit's client: it need not be allowed there", user)
		}
	}
}

// TestModulesAreApart checks the require and replace directives of each go.mod by the same rules as
// imports. In addition, a module of the test kit must not replace a module by a folder outside of
// the kit.
func TestModulesAreApart(t *testing.T) {
	named := regexp.MustCompile(`(?m)^(?:require|replace)?\s*(` + regexp.QuoteMeta(strings.TrimSuffix(module, "/")) + `\S*) (?:v|=> (\S+))`)
	modules := 0
	for file, source := range contents(t, func(file string) bool { return filepath.Base(file) == "go.mod" }) {
		modules++
		for _, match := range named.FindAllStringSubmatch(string(source), -1) {
			if why := mixes(file, match[1]); why != "" {
				t.Errorf("%s: %s: %s", file, why, match[1])
			}
			folder := filepath.Join(filepath.Dir(file), match[2]) + "/"
			if match[2] != "" && strings.HasPrefix(file, kitFolder) && !strings.HasPrefix(folder, kitFolder) {
				t.Errorf("%s replaces %s by %s, which is not in %s", file, match[1], match[2], kitFolder)
			}
		}
	}
	if modules < 10 {
		t.Errorf("only %d go.mod files were found", modules)
	}
}

func TestMixes(t *testing.T) {
	for _, tt := range []struct {
		file, pkg string
		fine      bool
	}{
		{"internal/restart/act.go", "tidekeeper.dev/tidekeeper/api/v1", true},
		{"internal/restart/act.go", "tidekeeper.dev/tidekeeper/sandbox/client", false},
		{"internal/restart/act_test.go", "tidekeeper.dev/tidekeeper/sandbox/client", false},
		{"hack/suites/runner.go", "tidekeeper.dev/tidekeeper/sandbox/client/child", false},
		{"hack/demo/demo.go", "tidekeeper.dev/tidekeeper/sandbox/client", true},
		{"test/framework/cluster.go", "tidekeeper.dev/tidekeeper/sandbox/client", true},
		{"test/framework/cluster.go", "tidekeeper.dev/tidekeeper/sandbox/internal/ports", false},
		{"sandbox/internal/cli/up.go", "tidekeeper.dev/tidekeeper/sandbox/internal/ports", true},
		{"sandbox/internal/cli/up.go", "tidekeeper.dev/tidekeeper/internal/text", false},
		{"sandbox/go.mod", "tidekeeper.dev/tidekeeper", false},
		{"sandbox/test/run_test.go", "tidekeeper.dev/tidekeeper/test/framework", false},
		{"sandbox/examples/guestbook/cmd/main.go", "example.com/guestbook/api/v1", true},
	} {
		if got := mixes(tt.file, tt.pkg); (got == "") != tt.fine {
			t.Errorf("%s imports %s: %q, fine: %t", tt.file, tt.pkg, got, tt.fine)
		}
	}
}

// outside matches relative paths that lead out of the folder of the file that contains them.
var outside = regexp.MustCompile(`(?:\.\./)+\w[\w./-]*`)

// links matches the targets of links in a Markdown page.
var links = regexp.MustCompile(`\]\(([^)#:\s]+)`)

// kitShares maps files of the test kit to files outside of the kit that they may name. The tools
// and settings that the kit's Makefile uses are listed in the Makefile's variable SHARED instead.
var kitShares = map[string][]string{
	"sandbox/README.md": {"README.md"},
}

// TestKitStandsAlone checks that the test kit's files name no files outside of the kit, because
// these would be missing in a separate repository.
func TestKitStandsAlone(t *testing.T) {
	looked := 0
	for file, source := range contents(t, func(file string) bool { return strings.HasPrefix(file, kitFolder) && filepath.Base(file) != "go.sum" }) {
		looked++
		for _, name := range leaves(file, string(source)) {
			t.Errorf("%s names %s, which is outside of %s", file, name, kitFolder)
		}
	}
	if looked < 100 {
		t.Errorf("only %d files of the kit were looked at", looked)
	}
}

// leaves returns the existing files outside of the test kit that a file of the kit names. In a
// page, only links count, because code in a page may name files in other folders.
func leaves(file, source string) []string {
	named := outside.FindAllString(source, -1)
	if filepath.Ext(file) == ".md" {
		named = nil
		for _, link := range links.FindAllStringSubmatch(source, -1) {
			named = append(named, link[1])
		}
	}
	var names []string
	for _, name := range named {
		target := filepath.Join(filepath.Dir(file), name)
		_, err := os.Stat(filepath.Join("../..", target))
		if err == nil && !strings.HasPrefix(target+"/", kitFolder) && !hasPrefix(target, kitShares[file]) {
			names = append(names, target)
		}
	}
	return names
}

func TestLeaves(t *testing.T) {
	for _, tt := range []struct{ file, source, want string }{
		{"sandbox/docs/explore.md", "[reliability](../../docs/architecture.md#x)", "[docs/architecture.md]"},
		{"sandbox/docs/explore.md", "[the README](../README.md)", "[]"},
		{"sandbox/docs/explore.md", "`../../config`", "[]"},
		{"sandbox/README.md", "[the operator](../README.md)", "[]"},
		{"sandbox/README.md", "[its nodes](../docs/concepts/node-pools.md)", "[docs/concepts/node-pools.md]"},
		{"sandbox/test/a_test.go", `os.ReadFile("../../go.mod")`, "[go.mod]"},
		{"sandbox/test/a_test.go", `os.ReadFile("../go.mod")`, "[]"},
		{"sandbox/internal/fuzz/edits/hostile.go", `"../../etc/passwd"`, "[]"},
	} {
		if got := fmt.Sprint(leaves(tt.file, tt.source)); got != tt.want {
			t.Errorf("%s with %s leaves to %s, want %s", tt.file, tt.source, got, tt.want)
		}
	}
}
