// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// expression is how a workflow names a value.
var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// The steps of the action put the program into the PATH, as a runner would run them: compiled
// if it is not cached, and not compiled if it is.
func TestAction(t *testing.T) {
	text, err := os.ReadFile("../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Runs struct {
			Using string
			Steps []struct {
				ID, If, Uses, Shell, Run string
				Env                      map[string]string
				With                     map[string]any
			}
		}
	}
	if err := yaml.UnmarshalStrict(dropDescriptions(text), &action); err != nil {
		t.Fatal(err)
	}
	if action.Runs.Using != "composite" {
		t.Errorf("it is %q, want a composite action", action.Runs.Using)
	}
	for _, cached := range []bool{false, true} {
		dir := t.TempDir()
		// In the place of make, which takes minutes: the program is there already.
		tools := filepath.Join(dir, "tools")
		if err := os.Mkdir(tools, 0o700); err != nil {
			t.Fatal(err)
		}
		script := "#!/bin/sh\necho \"$@\" >>" + dir + "/made\nmkdir -p " + dir + "/tidekeeper-sandbox && ln -sf " + binary + " " + dir + "/tidekeeper-sandbox/sandbox\n"
		if err := os.WriteFile(filepath.Join(tools, "make"), []byte(script), 0o700); err != nil { //nolint:gosec // A program.
			t.Fatal(err)
		}
		root, err := filepath.Abs("..")
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]string{"github.action_path": root, "runner.temp": dir, "inputs.go-version": "1", "inputs.user-namespaces": "false"}
		if cached {
			known["steps.cache.outputs.cache-hit"] = "true"
			if err := os.Mkdir(filepath.Join(dir, "tidekeeper-sandbox"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(binary, filepath.Join(dir, "tidekeeper-sandbox", "sandbox")); err != nil {
				t.Fatal(err)
			}
		}
		value := func(text string) string {
			return expression.ReplaceAllStringFunc(text, func(e string) string {
				name := expression.FindStringSubmatch(e)[1]
				if _, ok := known[name]; !ok {
					t.Errorf("nothing sets %q", name)
				}
				return known[name]
			})
		}
		output, path := filepath.Join(dir, "output"), filepath.Join(dir, "path")
		for _, step := range action.Runs.Steps {
			if step.If != "" && step.If != "steps.cache.outputs.cache-hit != 'true'" {
				t.Errorf("a step has the condition %q", step.If)
			}
			if step.If != "" && cached {
				continue
			}
			if step.Uses != "" {
				if !regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`).MatchString(step.Uses) {
					t.Errorf("%s is not named by commit", step.Uses)
				}
				for _, text := range step.With {
					value(fmt.Sprint(text))
				}
				continue
			}
			cmd := exec.Command(step.Shell, "-e", "-o", "pipefail", "-c", step.Run)
			cmd.Env = append(os.Environ(), "GITHUB_OUTPUT="+output, "GITHUB_PATH="+path, "PATH="+tools+":"+os.Getenv("PATH"))
			for name, text := range step.Env {
				cmd.Env = append(cmd.Env, name+"="+value(text))
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", step.Run, err, out)
			}
			for name, text := range outputs(t, output) {
				known["steps."+step.ID+"."+"outputs."+name] = text
			}
		}
		if key := known["steps.source.outputs.key"]; !regexp.MustCompile(`^sandbox-Linux-\w+-[0-9a-f]{16}$`).MatchString(key) {
			t.Errorf("the key of the cache is %q", key)
		}
		made, _ := os.ReadFile(filepath.Join(dir, "made"))
		if want := "-C " + root + " build OUT=" + dir + "/tidekeeper-sandbox\n"; !cached && string(made) != want || cached && len(made) > 0 {
			t.Errorf("cached %t: make was called with %q", cached, made)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != dir+"/tidekeeper-sandbox\n" {
			t.Errorf("added to the PATH: %q, %v", got, err)
		}
	}
}

// outputs returns what steps have written to the file of outputs.
func outputs(t *testing.T, file string) map[string]string {
	t.Helper()
	all := map[string]string{}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), "=")
		all[name] = text
	}
	return all
}

// dropDescriptions leaves the part of the action that is run.
func dropDescriptions(text []byte) []byte {
	_, runs, _ := strings.Cut(string(text), "\nruns:")
	return []byte("runs:" + runs)
}
