// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const module = "tidekeeper.dev/tidekeeper/"

// pureRule returns the folders and the denied imports in the depguard rule "pure" of .golangci.yml.
func pureRule(t *testing.T) (folders, denied []string) {
	t.Helper()
	source, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Files []string
						Deny  []struct{ Pkg string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(source, &config); err != nil {
		t.Fatal(err)
	}
	rule := config.Linters.Settings.Depguard.Rules["pure"]
	for _, file := range rule.Files {
		if file == "!$test" {
			continue
		}
		folder, ok := strings.CutPrefix(path.Dir(file), "**/")
		if !ok || path.Base(file) != "*.go" {
			t.Fatalf("a file of the rule pure is %q, not **/FOLDER/*.go", file)
		}
		folders = append(folders, folder)
	}
	for _, deny := range rule.Deny {
		denied = append(denied, deny.Pkg)
	}
	if len(folders) == 0 || len(denied) == 0 {
		t.Fatal("the rule pure has no files, or denies nothing")
	}
	return folders, denied
}

// TestPurePackagesImportPureOnes checks the imports of each pure package: the only packages of this
// module among them may be other pure packages and the API types. Otherwise a pure package could
// reach a client through another package.
func TestPurePackagesImportPureOnes(t *testing.T) {
	folders, _ := pureRule(t)
	pure := []string{module + "api/v1"}
	for _, folder := range folders {
		pure = append(pure, module+folder)
	}
	for _, folder := range folders {
		if _, err := os.Stat("../../" + folder); err != nil {
			t.Errorf(".golangci.yml names a pure package that does not exist: %v", err)
			continue
		}
		list, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, module+folder).Output()
		if err != nil {
			t.Fatalf("list the imports of %s: %v", folder, err)
		}
		for _, imported := range strings.Fields(string(list)) {
			if strings.HasPrefix(imported, module) && !slices.Contains(pure, imported) {
				t.Errorf("%s is pure and imports %s, which is not", folder, imported)
			}
		}
	}
}

// TestPureRuleReportsAnAddedImport checks that the depguard rule "pure" reports each denied import
// in each pure package, but no other import and no other package. It runs only in make lint,
// because it needs the linter's command in GOLANGCI_LINT.
func TestPureRuleReportsAnAddedImport(t *testing.T) {
	linter := strings.Fields(os.Getenv("GOLANGCI_LINT"))
	if len(linter) == 0 {
		t.Skip("GOLANGCI_LINT is not set: make lint runs this")
	}
	folders, denied := pureRule(t)

	// A stub of each package is enough, because the rule examines only paths and imports.
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	write(".golangci.yml", string(config))
	mod := "module " + strings.TrimSuffix(module, "/") + "\n\ngo 1.26.0\n"
	stub := "package stub\n\nimport (\n\t_ \"strings\"\n"
	for _, pkg := range denied {
		stub += fmt.Sprintf("\t_ %q\n", pkg)
		if strings.Contains(pkg, ".") { // packages outside of the standard library need a stub
			write("stubs/"+pkg+"/go.mod", "module "+pkg+"\n\ngo 1.26.0\n")
			write("stubs/"+pkg+"/stub.go", "package stub\n")
			mod += fmt.Sprintf("\nrequire %s v0.0.0\nreplace %s => ./stubs/%s\n", pkg, pkg, pkg)
		}
	}
	stub += ")\n"
	write("go.mod", mod)
	for _, folder := range append(folders, "internal/notpure") {
		write(folder+"/stub.go", stub)
	}

	args := append(linter[1:], "run", "--default=none", "--enable=depguard", "--show-stats=false", "--output.text.print-issued-lines=false", "./...")
	cmd := exec.Command(linter[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("the linter accepts it")
	}
	for _, folder := range folders {
		for _, pkg := range denied {
			want := fmt.Sprintf("import '%s' is not allowed from list 'pure'", pkg)
			if !reports(string(out), folder+"/stub.go", want) {
				t.Errorf("%s may import %s", folder, pkg)
			}
		}
		if reports(string(out), folder+"/stub.go", "'strings'") {
			t.Errorf("%s may not import strings", folder)
		}
	}
	if reports(string(out), "internal/notpure", "'pure'") {
		t.Error("the rule is for all packages")
	}
	if t.Failed() {
		t.Logf("golangci-lint said:\n%s", out)
	}
}

func reports(out, file, message string) bool {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, file) && strings.Contains(line, message) {
			return true
		}
	}
	return false
}
