// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command score runs explore or fuzz on published versions of operators, some of which have known bugs,
// and prints a Markdown table of the findings for test/findings.md.
//
//	score PATH-OF-SANDBOX DIR [ROW...]
//	score found PATH-OF-SANDBOX DIR [FINDING...]
//
// The first form plays each row for ten minutes. The second form replays the saved findings in the
// folder found. A row and a finding may be named by the beginning of its name. The operators are compiled from their
// source in the Go module proxy.
package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var workloads embed.FS

// row describes an operator and its known bugs. The output contains a table row for each.
type row struct {
	name string
	// module is the operator's Go module, or empty for an operator in this repository. crds lists
	// the files and folders in the module with the manifests to install, as patterns with spaces
	// between them.
	module, version, crds string
	// replace is an argument of go mod edit -replace, for a dependency that is no longer served under
	// its name, or empty.
	replace string
	// pkg is the folder in the module with the operator's main package, or empty for the module's
	// root. main is a file with a main package for an operator without one, relative to the folder
	// sandbox.
	pkg, main string
	// application is the folder with the main package of what answers for the operator's pods, or empty.
	// The workload finds the program as ./application.
	application string
	workload    string
	// object is the file with the object that fuzz edits, and flags are further flags of fuzz. If
	// object is empty, explore plays the row.
	object  string
	flags   []string
	command []string
	known   []mistake
}

// mistake is a known bug of an operator. Its name begins with the number of the GitHub issue about
// the bug.
type mistake struct {
	name string
	// fault is the kind of fault that reveals the bug, or empty for any kind. asOf is the beginning
	// of the moment whose lists the operator is started on, or empty for any moment. says lists
	// phrases that must all occur in a single line of the finding.
	fault string
	asOf  string
	says  []string
	// edit occurs in the name of the property that fuzz has edited, or is empty for any.
	edit string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	replay := len(args) > 0 && args[0] == "found"
	if replay {
		args = args[1:]
	}
	if len(args) < 2 {
		return errors.New("want [found] PATH-OF-SANDBOX DIR [NAME...]")
	}
	sandbox, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if replay {
		return replaySaved(ctx, sandbox, args[1], args[2:])
	}
	chosen, err := choose(rowNames(), args[2:])
	if err != nil {
		return err
	}
	lines := []string{"| operator | known | found | other findings | faults or edits played | took |", "|---|---|---|---|---|---|"}
	for _, r := range rows {
		if !slices.Contains(chosen, r.name) {
			continue
		}
		line, err := r.play(ctx, sandbox, args[1])
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		lines = append(lines, line)
	}
	fmt.Println(strings.Join(lines, "\n"))
	return nil
}

// choose returns the known names that begin with one of the given beginnings, or all of them if none
// is given. It returns an error if no known name begins so.
func choose(known, beginnings []string) (chosen []string, err error) {
	for _, beginning := range beginnings {
		if !slices.ContainsFunc(known, func(name string) bool { return strings.HasPrefix(name, beginning) }) {
			return nil, fmt.Errorf("there is no %s, only %s", beginning, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		return len(beginnings) > 0 && !slices.ContainsFunc(beginnings, func(beginning string) bool { return strings.HasPrefix(name, beginning) })
	}), nil
}

func rowNames() (names []string) {
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}

// prepare removes the directory of the row in dir, makes it again, and builds the operator in it. It
// returns the path of the directory.
func (r row) prepare(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(dir, r.name))
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil || r.module == "" {
		return dir, err
	}
	source, err := r.source(ctx, dir)
	if err != nil {
		return "", err
	}
	if r.replace != "" {
		edit := exec.CommandContext(ctx, "go", "mod", "edit", "-replace="+r.replace)
		edit.Dir, edit.Stderr = source, os.Stderr
		if err := edit.Run(); err != nil {
			return "", fmt.Errorf("go mod edit: %w", err)
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", filepath.Join(dir, operator), "./"+r.pkg)
	build.Dir, build.Stderr = source, os.Stderr
	if r.main != "" {
		build.Dir = filepath.Join(source, "operator")
		if err := copyInto(build.Dir, r.main); err != nil {
			return "", err
		}
	}
	// With -trimpath, as all else is compiled, the standard library is not compiled once more.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build: %w", err)
	}
	if r.application == "" {
		return dir, nil
	}
	build = exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", filepath.Join(dir, "application"), "./internal/tools/score/"+r.application)
	build.Stderr = os.Stderr
	return dir, build.Run()
}

// copyInto copies a file to a new directory.
func copyInto(dir, file string) error {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600)
}

// play runs explore or fuzz on the operator for ten minutes, and returns the operator's table row. The
// paths in the findings are relative to the directory of the row.
func (r row) play(ctx context.Context, sandbox, dir string) (string, error) {
	dir, err := r.prepare(ctx, dir)
	if err != nil {
		return "", err
	}
	text, err := workloads.ReadFile(r.workload)
	if err != nil {
		return "", err
	}
	if r.module != "" {
		manifests, err := r.manifests(dir)
		if err != nil {
			return "", err
		}
		text = fmt.Appendf(text, "install: [%s]\n", strings.Join(manifests, ", "))
	}
	if err := os.WriteFile(filepath.Join(dir, "workload.yaml"), text, 0o600); err != nil {
		return "", err
	}
	tool := []string{"explore"}
	if r.object != "" {
		if text, err = workloads.ReadFile(r.object); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "object.yaml"), text, 0o600); err != nil {
			return "", err
		}
		tool = append([]string{"fuzz", "--object", "object.yaml"}, r.flags...)
	}
	began := time.Now()
	play := exec.CommandContext(ctx, sandbox, slices.Concat(tool, []string{"--workload", "workload.yaml", "--dir", "results", "--for", "10m", "--"}, r.command)...)
	var report bytes.Buffer
	play.Dir, play.Stdout, play.Stderr = dir, io.MultiWriter(&report, os.Stdout), os.Stderr
	if err := play.Run(); err != nil && play.ProcessState.ExitCode() != found {
		return "", err
	}
	findings, err := readFindings(filepath.Join(dir, "results"))
	if err != nil {
		return "", err
	}
	played, err := os.ReadFile(filepath.Join(dir, "results", "played.jsonl"))
	if err != nil {
		return "", err
	}
	return r.line(findings, shown(report.String()), bytes.Count(played, []byte("\n")), time.Since(began)), nil
}

// manifests returns the files and folders to install from the source of the operator, relative to dir.
func (r row) manifests(dir string) ([]string, error) {
	var all []string
	for pattern := range strings.FieldsSeq(r.crds) {
		files, err := fs.Glob(os.DirFS(dir), path.Join("source", pattern))
		if err == nil && len(files) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", pattern, r.module, err)
		}
		all = append(all, files...)
	}
	return all, nil
}

// found is the exit code of explore, fuzz and replay if there is a finding.
const found = 2

// source copies the source of the operator's module to a directory below dir, because the files in
// the module cache are read-only. It returns the path of the copy.
func (r row) source(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", r.module+"@"+r.version).Output()
	if err != nil {
		return "", fmt.Errorf("%s@%s is not served here: %w", r.module, r.version, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return "", err
	}
	source := filepath.Join(dir, "source")
	if err := os.CopyFS(source, os.DirFS(downloaded.Dir)); err != nil {
		return "", err
	}
	return source, filepath.Walk(source, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
}

// finding holds the fields of a file with a finding of explore or fuzz that the table needs. A finding
// of explore has Problems, and one of fuzz has a Problem and Edits.
type finding struct {
	file  string
	After float64 `json:"after"`
	Fault struct {
		Kind string `json:"kind"`
		AsOf string `json:"asOf"`
	} `json:"fault"`
	Edits    []edit    `json:"edits"`
	Problems []problem `json:"problems"`
	Problem  problem   `json:"problem"`
}

type edit struct {
	Field string `json:"field"`
}

type problem struct {
	Lines []string `json:"lines"`
}

// readFindings reads the findings in dir, in chronological order.
func readFindings(dir string) ([]finding, error) {
	files, err := filepath.Glob(filepath.Join(dir, "finding-*.yaml"))
	if err != nil {
		return nil, err
	}
	var findings []finding
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return nil, err
		}
		f := finding{file: file}
		if err := yaml.Unmarshal(text, &f); err != nil {
			return nil, err
		}
		findings = append(findings, f)
	}
	slices.SortFunc(findings, func(a, b finding) int { return cmp.Compare(a.After, b.After) })
	return findings, nil
}

// shows reports whether the given bug explains the finding.
func (f *finding) shows(m mistake) bool {
	if m.fault != "" && m.fault != f.Fault.Kind || !strings.HasPrefix(f.Fault.AsOf, m.asOf) {
		return false
	}
	if m.edit != "" && !slices.ContainsFunc(f.Edits, func(e edit) bool { return strings.Contains(e.Field, m.edit) }) {
		return false
	}
	for _, p := range append(f.Problems, f.Problem) {
		for _, line := range p.Lines {
			if !slices.ContainsFunc(m.says, func(part string) bool { return !strings.Contains(line, part) }) {
				return true
			}
		}
	}
	return false
}

// shown returns the names of the files of the findings that a report lists. A report lists only one
// of several findings that probably have the same cause.
func shown(report string) []string {
	var files []string
	for line := range strings.Lines(report) {
		if file, is := strings.CutPrefix(strings.TrimSpace(line), "again: sandbox replay "); is {
			files = append(files, filepath.Base(file))
		}
	}
	return files
}

// line returns the operator's table row: the known bugs that were found, the time after which they
// were found, and the number of other findings.
func (r row) line(findings []finding, shown []string, played int, took time.Duration) string {
	var known, lines []string
	for _, m := range r.known {
		known = append(known, m.name)
		if i := slices.IndexFunc(findings, func(f finding) bool { return f.shows(m) }); i >= 0 {
			number, _, _ := strings.Cut(m.name, ":")
			lines = append(lines, fmt.Sprintf("%s after %.0f s", number, findings[i].After))
		}
	}
	others := 0
	for _, f := range findings {
		if slices.Contains(shown, filepath.Base(f.file)) && !slices.ContainsFunc(r.known, f.shows) {
			others++
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %d | %s |", r.name, or(strings.Join(known, "; ")), or(strings.Join(lines, "; ")), others, played, took.Round(time.Second))
}

func or(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
