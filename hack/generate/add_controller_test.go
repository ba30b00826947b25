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

// TestAddAController follows docs/add-a-controller.md in a copy of the repository: it
// writes the files, applies the changes and runs the commands that are there, and
// nothing else.
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
	kinds := map[string]int{}
	for _, step := range stepsOf(string(text)) {
		kinds[step.language]++
		switch path := filepath.Join(dir, step.path); step.language {
		case "go":
			write(t, path, step.text)
		case "diff":
			write(t, path, applied(t, read(t, path), step.text))
		case "sh":
			if strings.HasPrefix(step.text, "go test") && !all {
				t.Log("TEST_ALL is not set: the tests of the manager are not run on it")
				continue
			}
			runIn(t, dir, step.text)
		default:
			t.Fatalf("a block of %q", step.language)
		}
	}
	if kinds["go"] != 3 || kinds["diff"] != 2 || kinds["sh"] != 2 {
		t.Errorf("the page has other blocks than expected: %v", kinds)
	}
	runIn(t, dir, "gofmt -d internal/zonecount internal/manager")
	if all {
		runIn(t, dir, "go vet ./internal/zonecount ./cmd/tidekeeper")
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

// step is a block of code in the page, and the file that it is about.
type step struct{ language, path, text string }

var fence = regexp.MustCompile("(?ms)^ *```([a-z]+) ?(\\S*)\n(.*?)^ *```$")

// stepsOf returns the blocks of code of a page, without their indentation in the list.
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

// applied returns a text with a diff applied whose lines are context or additions.
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

// copyTree copies what the manager, its generators and its chart are made from.
func copyTree(t *testing.T, to string) {
	t.Helper()
	entries := []string{"go.mod", "go.sum", "Makefile", "api", "charts", "cmd/tidekeeper", "config", "docs/reference", "hack/generate", "hack/copy-into-chart", "internal"}
	for _, entry := range entries {
		err := filepath.WalkDir(filepath.Join(root, entry), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			write(t, filepath.Join(to, name), read(t, path))
			return os.Chmod(filepath.Join(to, name), info.Mode())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runIn runs commands as make build does, so that they find compiled what it has
// compiled. They must not print anything that is not wanted.
func runIn(t *testing.T, dir, commands string) {
	t.Helper()
	for command := range strings.Lines(commands) {
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = dir
		// -vet=off: what go test would have vet look for, go vet finds.
		cmd.Env = append(slices.Clone(os.Environ()), "GOFLAGS=-trimpath -vet=off", "CGO_ENABLED=0", "GOWORK=off")
		began := time.Now()
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %s", strings.TrimSpace(command), time.Since(began).Round(time.Millisecond))
		if err != nil || words[0] == "gofmt" && len(out) > 0 {
			t.Fatalf("%s: %v\n%s", strings.TrimSpace(command), err, out)
		}
	}
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
