// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// goTest holds what the template of a Go test of a finding needs.
type goTest struct {
	// Package is the name of the test's package. Name is the name of the test function.
	Package, Name string
	// Tool is the name of the command that made the finding.
	Tool string
	// Title and Where describe the finding, each in a line.
	Title, Where string
	// Dir is the directory that the paths in the finding are relative to, and File is the file of the
	// finding. Dir is relative to the test, and File to Dir.
	Dir, File string
	Command   []string
}

var goTestTemplate = template.Must(template.New("test").Parse(`package {{.Package}}

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"testing"
)

// {{.Name}} plays a finding of sandbox {{.Tool}} again, and fails until the operator is fixed:
// {{.Title}},
// {{.Where}}.
//
// Build the operator before the test. SANDBOX_BIN is the path of the program sandbox, if it is not in
// the PATH.
func {{.Name}}(t *testing.T) {
	command := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("SANDBOX_BIN"), "sandbox"), "replay", {{printf "%q" .File}}, "--"{{range .Command}}, {{printf "%q" .}}{{end}})
	command.Dir = {{printf "%q" .Dir}} // The paths of the finding are relative to this directory.
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 2:
		t.Errorf("the operator has this mistake, or another:\n%s", out)
	case err != nil:
		t.Fatalf("the finding could not be played: %v\n%s", err, out)
	}
}
`))

// writeGoTest writes a Go test that plays a finding to a new file. findingFile is the file of the
// finding, and program is the operator to test; if it is empty, it is the finding's.
func writeGoTest(file, findingFile string, program []string) error {
	if !strings.HasSuffix(file, "_test.go") {
		return fmt.Errorf("--as-go-test %s: the name of a Go test ends with _test.go", file)
	}
	tool, finding, err := readFinding(findingFile)
	if err != nil {
		return err
	}
	test := goTest{Tool: tool, Title: words.OneLine(finding.Title()), Where: words.OneLine(finding.Where()), Command: program}
	if len(program) == 0 {
		test.Command = results.CommandOf(finding)
	}
	folder := filepath.Dir(file)
	if test.Package, err = packageOf(folder); err != nil {
		return fmt.Errorf("--as-go-test: %w", err)
	}
	test.Name = "TestFinding_" + identifier(finding.Case())
	if test.Dir, err = relative(folder, "."); err != nil {
		return err
	}
	if test.File, err = relative(".", findingFile); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := goTestTemplate.Execute(&text, test); err != nil {
		return err
	}
	source, err := format.Source(text.Bytes())
	if err != nil {
		return err
	}
	if err := writeNew(file, source); err != nil {
		return fmt.Errorf("--as-go-test: %w", err)
	}
	return nil
}

// writeNew writes a file, and returns an error if it exists: the user may have changed it.
func writeNew(file string, content []byte) error {
	out, err := os.OpenFile(filepath.Clean(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return errors.Join(err, out.Close())
}

// relative returns a path relative to a directory. Both are relative to the working directory, or
// absolute.
func relative(dir, path string) (string, error) {
	var err error
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return filepath.Rel(dir, path)
}

// readFinding reads a finding of explore or fuzz, and returns the name of the command as well.
func readFinding(file string) (tool string, found results.Finding, err error) {
	if fuzz.IsFinding(file) {
		found, err = fuzz.Tool.ReadFinding(file)
		return fuzz.Tool.Name, found, err
	}
	found, err = explore.Tool.ReadFinding(file)
	return explore.Tool.Name, found, err
}

// packageOf returns the name of the Go package in a folder. For a folder without Go files, it derives
// a name from that of the folder.
func packageOf(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly); err == nil {
			return parsed.Name.Name, nil
		}
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	name := strings.ToLower(identifier(filepath.Base(folder)))
	if name == "" || !token.IsIdentifier(name) {
		return "findings", nil
	}
	return name, nil
}

// notInIdentifier matches what cannot be part of the name of a Go function.
var notInIdentifier = regexp.MustCompile(`[^A-Za-z0-9_]+`)

func identifier(text string) string { return notInIdentifier.ReplaceAllString(text, "") }
