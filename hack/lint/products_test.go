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

// kitFolder is the folder of the test kit, which could be a repository of its own.
const kitFolder = "sandbox/"

// kitUsers are the folders of the operator whose files may import the client of the kit.
var kitUsers = []string{"test/", "hack/demo/"}

// mixes returns why a file may not import a package: the kit imports no package of the operator, and
// the operator imports the kit's client only, in tests and the demo. It returns "" if the file may.
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

// Both products are apart in each Go file of each module, whatever its build tags.
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

// Go.mod files require and replace no more than the imports: a module of the kit none of the
// operator's, by name or by folder, and the operator's the client, in tests and the demo.
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

// outside finds names of files above the folder of the file that has them.
var outside = regexp.MustCompile(`(?:\.\./)+\w[\w./-]*`)

// links finds the files that a page links to.
var links = regexp.MustCompile(`\]\(([^)#:\s]+)`)

// kitShares are what the kit uses of the rest of the repository, by file: the tools and settings of
// its Makefile are named by SHARED, and its README leads to the operator.
var kitShares = map[string][]string{
	"sandbox/README.md": {"README.md"},
}

// The files of the kit name no files outside of it, which would not be there in a repository of its own.
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

// leaves returns the files of the repository that a file of the kit names, and that are not the kit's.
// Of a page, links are looked at: the code on it is of other folders.
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
