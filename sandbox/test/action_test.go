// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// expression matches a GitHub Actions expression, such as ${{ inputs.version }}.
var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// action holds the executable part of action.yml.
type action struct {
	Runs struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	ID, If, Uses, Shell, Run string
	Env                      map[string]string
	With                     map[string]any
}

func readAction(t *testing.T) action {
	t.Helper()
	text, err := os.ReadFile("../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.UnmarshalStrict(dropDescriptions(text), &a); err != nil {
		t.Fatal(err)
	}
	if a.Runs.Using != "composite" {
		t.Errorf("it is %q, want a composite action", a.Runs.Using)
	}
	return a
}

// TestAction checks that the steps of action.yml put the sandbox program into the PATH, from the
// cache, from a release archive or by compiling it. The test acts as the GitHub runner and runs the
// steps itself.
func TestAction(t *testing.T) {
	script := []byte("#!/bin/sh\nexec " + binary + " \"$@\"\n")
	archive := archiveOf(t, "sandbox", script)
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		_, _ = w.Write(archive)
	}))
	defer server.Close()
	architecture := runtime.GOARCH
	for _, tt := range []struct {
		name, version, checksum string
		cached                  bool
		// made is set if the action must call make; asked lists the URL paths of the archives that
		// it must download.
		made  bool
		asked []string
		// fails is part of the failing step's error message, or "" if no step fails.
		fails string
	}{
		{name: "compiled", made: true},
		{name: "compiled, and cached", cached: true},
		{name: "of a release", version: "v0.1.0", checksum: sum, asked: []string{"/sandbox-v0.1.0-linux-" + architecture + ".tar.gz"}},
		{name: "of a release, and cached", version: "v0.1.0", checksum: sum, cached: true},
		{
			name: "of a release, with another checksum", version: "v0.1.0", checksum: strings.Repeat("0", 64), asked: []string{"/sandbox-v0.1.0-linux-" + architecture + ".tar.gz"},
			fails: "has another SHA-256 than the input checksum",
		},
		{name: "of a release, without a checksum", version: "v0.1.0", fails: "checksum must be the SHA-256 of its archive"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			r := newRunner(t, map[string]string{"inputs.version": tt.version, "inputs.checksum": tt.checksum, "inputs.url": server.URL})
			if tt.cached {
				r.known["steps.cache.outputs.cache-hit"] = "true"
				if err := errors.Join(os.Mkdir(r.program(), 0o700), os.Symlink(binary, filepath.Join(r.program(), "sandbox"))); err != nil {
					t.Fatal(err)
				}
			}
			failed := r.play(t, readAction(t))
			if (failed == "") != (tt.fails == "") || !strings.Contains(failed, tt.fails) {
				t.Fatalf("it fails with %q, want %q", failed, tt.fails)
			}
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("downloaded were %q, want %q", asked, tt.asked)
			}
			if key := r.known["steps.source.outputs.key"]; tt.fails == "" && !regexp.MustCompile(`^sandbox-Linux-\w+-[0-9a-f]{16}$`).MatchString(key) {
				t.Errorf("the key of the cache is %q", key)
			}
			made, _ := os.ReadFile(filepath.Join(r.dir, "made"))
			if want := "-C " + r.known["github.action_path"] + " build OUT=" + r.program() + "\n"; tt.made && string(made) != want || !tt.made && len(made) > 0 {
				t.Errorf("make was called with %q", made)
			}
			got, _ := os.ReadFile(filepath.Join(r.dir, "path"))
			if want := r.program() + "\n"; (tt.fails == "") != (string(got) == want) {
				t.Errorf("added to the PATH: %q", got)
			}
		})
	}
}

// TestActionUserNamespaces checks that the action permits user namespaces only if it is asked to,
// and only if the kernel forbids them.
func TestActionUserNamespaces(t *testing.T) {
	const setting = "kernel.apparmor_restrict_unprivileged_userns"
	for _, tt := range []struct {
		allow, kernel string // kernel is the kernel's setting, or "" if it has none
		asked         string // the arguments of sudo
	}{
		{"true", "1", "sysctl -w " + setting + "=0\n"},
		{"true", "0", ""},
		{"true", "", ""},
		{"false", "1", ""},
	} {
		t.Run("asked "+tt.allow+", kernel "+tt.kernel, func(t *testing.T) {
			r := newRunner(t, map[string]string{"inputs.version": "v0.1.0", "inputs.checksum": strings.Repeat("0", 64), "inputs.url": "", "inputs.user-namespaces": tt.allow})
			r.known["steps.cache.outputs.cache-hit"] = "true"
			if err := errors.Join(os.Mkdir(r.program(), 0o700), os.Symlink(binary, filepath.Join(r.program(), "sandbox"))); err != nil {
				t.Fatal(err)
			}
			r.fake(t, "sudo", "echo \"$@\" >>"+r.dir+"/asked\n")
			r.fake(t, "cat", "[ \"$*\" = /proc/sys/"+strings.ReplaceAll(setting, ".", "/")+" ] && [ -n \""+tt.kernel+"\" ] && echo "+tt.kernel+"\n")
			if failed := r.play(t, readAction(t)); failed != "" {
				t.Fatal(failed)
			}
			if asked, _ := os.ReadFile(filepath.Join(r.dir, "asked")); string(asked) != tt.asked {
				t.Errorf("sudo was called with %q, want %q", asked, tt.asked)
			}
		})
	}
}

// runner runs the steps of an action in a temporary directory.
type runner struct {
	dir, tools string
	// known maps workflow expressions to their values.
	known map[string]string
}

func newRunner(t *testing.T, inputs map[string]string) *runner {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{dir: t.TempDir()}
	r.tools = filepath.Join(r.dir, "tools")
	r.known = map[string]string{
		"github.action_path": root, "runner.temp": r.dir, "inputs.go-version": "1", "inputs.user-namespaces": "false", "steps.cache.outputs.cache-hit": "",
	}
	maps.Copy(r.known, inputs)
	if err := os.Mkdir(r.tools, 0o700); err != nil {
		t.Fatal(err)
	}
	// Put a fake make into the PATH that only links to the existing program, because the real build
	// takes minutes.
	r.fake(t, "make", "echo \"$@\" >>"+r.dir+"/made\nmkdir -p "+r.program()+" && ln -sf "+binary+" "+r.program()+"/sandbox\n")
	return r
}

// fake puts a shell script with the given name into the PATH of the steps.
func (r *runner) fake(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.tools, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // A program.
		t.Fatal(err)
	}
}

// program returns the directory in which the action installs the program.
func (r *runner) program() string { return filepath.Join(r.dir, "tidekeeper-sandbox") }

// value replaces the workflow expressions in a string with their values.
func (r *runner) value(t *testing.T, text string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		if _, ok := r.known[name]; !ok {
			t.Errorf("nothing sets %q", name)
		}
		return r.known[name]
	})
}

// holds reports whether all comparisons in a step's condition are true.
func (r *runner) holds(t *testing.T, condition string) bool {
	t.Helper()
	if condition == "" {
		return true
	}
	for comparison := range strings.SplitSeq(condition, " && ") {
		match := regexp.MustCompile(`^([\w.-]+) (==|!=) '(.*)'$`).FindStringSubmatch(comparison)
		if match == nil {
			t.Fatalf("a step has the condition %q", condition)
		}
		if (r.known[match[1]] == match[3]) != (match[2] == "==") {
			return false
		}
	}
	return true
}

// play runs the steps whose conditions are true until one fails, and returns the output of the
// failed step.
func (r *runner) play(t *testing.T, a action) string {
	t.Helper()
	output := filepath.Join(r.dir, "output")
	for _, step := range a.Runs.Steps {
		if !r.holds(t, step.If) {
			continue
		}
		if step.Uses != "" {
			if !regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`).MatchString(step.Uses) {
				t.Errorf("%s is not named by commit", step.Uses)
			}
			for _, text := range step.With {
				r.value(t, fmt.Sprint(text))
			}
			continue
		}
		cmd := exec.Command(step.Shell, "-e", "-o", "pipefail", "-c", step.Run)
		cmd.Env = append(os.Environ(), "GITHUB_OUTPUT="+output, "GITHUB_PATH="+filepath.Join(r.dir, "path"), "PATH="+r.tools+":"+os.Getenv("PATH"))
		for name, text := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+r.value(t, text))
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		for name, text := range outputs(t, output) {
			r.known["steps."+step.ID+"."+"outputs."+name] = text
		}
	}
	return ""
}

// archiveOf returns a gzip-compressed tar archive with a single file.
func archiveOf(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var data bytes.Buffer
	packed := gzip.NewWriter(&data)
	w := tar.NewWriter(packed)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// outputs returns the step outputs in the given file, by name.
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

// dropDescriptions removes the descriptions of the action and its inputs from action.yml.
func dropDescriptions(text []byte) []byte {
	_, runs, _ := strings.Cut(string(text), "\nruns:")
	return []byte("runs:" + runs)
}
