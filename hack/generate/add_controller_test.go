// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// TestAddAController follows docs/add-a-controller.md in a copy of the repository: it writes the
// page's files, applies its diffs and runs its commands, and does nothing else. With TEST_ALL, it
// then runs the unit tests that the changes can affect.
func TestAddAController(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the manager")
	}
	all := os.Getenv("TEST_ALL") != ""
	text, err := os.ReadFile(filepath.Join(root, "docs", "add-a-controller.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyTree(t, dir)
	runIn(t, dir, "git init -q") // the linters list files with git
	kinds, tested := map[string]int{}, []string{}
	for _, step := range stepsOf(string(text)) {
		kinds[step.language]++
		switch path := filepath.Join(dir, step.path); step.language {
		case "go":
			write(t, path, step.text)
		case "diff":
			write(t, path, applied(t, read(t, path), step.text))
		case "sh":
			if strings.HasPrefix(step.text, "go test") {
				tested = strings.Fields(step.text)
				continue // run below, together with the other tests
			}
			runIn(t, dir, step.text)
		default:
			t.Fatalf("a block of %q", step.language)
		}
	}
	if kinds["go"] != 3 || kinds["diff"] != 3 || kinds["sh"] != 2 {
		t.Errorf("the page has other blocks than expected: %v", kinds)
	}
	runIn(t, dir, "gofmt -d internal/zonecount internal/manager")
	if all {
		runIn(t, dir, "go vet ./internal/zonecount")
		played := playConcerned(t, dir, "tidekeeper.dev/tidekeeper/internal/zonecount", "tidekeeper.dev/tidekeeper/internal/manager")
		if pkg := strings.Replace(tested[len(tested)-1], ".", "tidekeeper.dev/tidekeeper", 1); !slices.Contains(played, pkg) {
			t.Errorf("the page tests %s, which the changes do not concern: %q", pkg, played)
		}
	} else {
		t.Log("TEST_ALL is not set: the unit tests are not run on it")
	}

	for path, want := range map[string]string{
		"docs/reference/configuration.md":          "| `--max-zones=int` | `100` | `1` to `1000` | maximum number of zones to count |",
		"docs/reference/metrics.md":                "| `tidekeeper_zone_nodes` | gauge | `zone` | Nodes of each zone. |",
		"docs/reference/controllers.md":            "## zone-count\n\nCounts the nodes of each zone.",
		"config/rbac/role.yaml":                    "  name: tidekeeper-zone-count\nrules:\n# Counts the nodes.\n- apiGroups: [\"\"]\n  resources: [nodes]\n  verbs: [list, watch]\n",
		"config/rbac/role_binding.yaml":            "  name: tidekeeper-zone-count\n",
		"charts/tidekeeper/files/rbac/role.yaml":   "  name: tidekeeper-zone-count\n",
		"charts/tidekeeper/files/controllers.yaml": "- name: zone-count\n  offByDefault: false\n  namespaced: false\n",
		"charts/tidekeeper/values.schema.json":     `"-zone-count"`,
	} {
		if got := read(t, filepath.Join(dir, path)); !strings.Contains(got, want) {
			t.Errorf("%s does not have\n%s", path, want)
		}
		if strings.Contains(read(t, filepath.Join(root, path)), "zone-count") {
			t.Errorf("%s of the repository itself has the example", path)
		}
	}
}

// step is a code block in the page, with the path of the file that it creates or changes.
type step struct{ language, path, text string }

var fence = regexp.MustCompile("(?ms)^ *```([a-z]+) ?(\\S*)\n(.*?)^ *```$")

// stepsOf returns the code blocks in a page, without the indentation of the list that contains
// them.
func stepsOf(page string) []step {
	const indent = "   "
	var steps []step
	for _, match := range fence.FindAllStringSubmatch(page, -1) {
		lines := strings.SplitAfter(match[3], "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], indent)
		}
		steps = append(steps, step{match[1], match[2], strings.Join(lines, "")})
	}
	return steps
}

// applied returns a file's content after a diff has been applied. The diff consists only of context
// lines and additions.
func applied(t *testing.T, text, diff string) string {
	t.Helper()
	var before, after strings.Builder
	for line := range strings.Lines(diff) {
		after.WriteString(line[1:])
		if line[0] == ' ' {
			before.WriteString(line[1:])
		}
	}
	if strings.Count(text, before.String()) != 1 {
		t.Fatalf("not once in the file:\n%s", before.String())
	}
	return strings.Replace(text, before.String(), after.String(), 1)
}

// copyTree copies the repository, without build results and files that tests have written.
func copyTree(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".cache", "bin", "rapid"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || d.Name() == ".git" { // .git is a file in a linked worktree
			return err
		}
		write(t, filepath.Join(to, name), read(t, path))
		return os.Chmod(filepath.Join(to, name), info.Mode())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// playConcerned runs the unit tests that a change of the given packages can affect, in a copy of
// the repository. These are the tests of packages that import a changed package or whose tests read
// files in other folders. It returns the packages. All other tests are compiled from the same files
// as in the repository, and read the same files.
func playConcerned(t *testing.T, dir string, changed ...string) (concerned []string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-test", "-deps=false", "-f", "{{.ImportPath}} {{.Dir}} {{.Deps}}", "./...")
	list.Dir, list.Env = dir, environment()
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(line))
		pkg, isTest := strings.CutSuffix(words[0], ".test")
		if !isTest {
			continue
		}
		folder := filepath.Join(dir, strings.TrimPrefix(pkg, "tidekeeper.dev/tidekeeper"))
		if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(changed, word) }) || readsOtherFolders(t, folder) {
			concerned = append(concerned, pkg)
		}
	}
	if len(concerned) < len(changed) {
		t.Fatalf("the changes concern the tests of %q only", concerned)
	}
	// In the copy, TestAddAController must not run again.
	runIn(t, dir, "go test -skip=^TestAdd "+strings.Join(concerned, " "))
	return concerned
}

// otherFolder matches a line of a test that reads a file in another folder.
var otherFolder = regexp.MustCompile(`"\.\.[/"]`)

// readsOtherFolders reports whether the tests in a folder read files in other folders. CRD files do
// not count, because a new controller does not change them.
func readsOtherFolders(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for line := range strings.Lines(read(t, file)) {
			if otherFolder.MatchString(line) && !strings.Contains(line, "/config/crd/bases/") {
				return true
			}
		}
	}
	return false
}

// runIn runs commands in dir with the environment of make build, so that they share its build
// cache. The test fails if a command fails or if gofmt prints a difference.
func runIn(t *testing.T, dir, commands string) {
	t.Helper()
	for command := range strings.Lines(commands) {
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = environment()
		began := time.Now()
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %s", strings.TrimSpace(command), time.Since(began).Round(time.Millisecond))
		if err != nil || words[0] == "gofmt" && len(out) > 0 {
			t.Fatalf("%s: %v\n%s", strings.TrimSpace(command), err, out)
		}
	}
}

// environment returns the environment of make build. -vet=off is set because go vet runs
// separately. TEST_ALL is empty, so that the same tests run as in the fast suites.
func environment() []string {
	return append(slices.Clone(os.Environ()), "GOFLAGS=-trimpath -vet=off", "CGO_ENABLED=0", "GOWORK=off", "TEST_ALL=")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
