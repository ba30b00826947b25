// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/client/console"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// tools lists the programs on the PATH of a user who follows the guide. It has no Go, Git, Make,
// Helm and kubectl.
var tools = []string{"base64", "cat", "chmod", "gzip", "ln", "mkdir", "openssl", "rm", "sha256sum", "tar"}

// guideManifest matches a manifest in the guide, whose first line is its file name.
var guideManifest = regexp.MustCompile("(?ms)^```yaml\n# ([\\w-]+\\.yaml)\n(.*?)^```$")

// TestGuide runs the commands of INSTALL.md in the release folder, and compares their output with
// the page. The user has the folder, a folder of the next version, the public key and the programs
// in `tools`. At the end, neither objects, processes nor files may be left.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile(in(t, "INSTALL.md"))
	if err != nil {
		t.Fatal(err)
	}
	u := newGuided(t)
	for _, match := range guideManifest.FindAllStringSubmatch(string(text), -1) {
		if err := os.WriteFile(filepath.Join(u.dir, match[1]), []byte(match[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	steps := console.Steps(string(text))
	if len(steps) < 30 {
		t.Fatalf("the guide has %d commands", len(steps))
	}
	for _, step := range steps {
		u.do(t, step)
	}
	if running := processesOf(t, u.home); len(running) > 0 {
		t.Errorf("still running: %q", running)
	}
	if files := u.files(t); len(files) > 0 {
		t.Errorf("left behind: %q", files)
	}
}

// guided is a user who follows the guide.
type guided struct {
	world
	home   string
	shell  *console.Shell
	before map[string]bool
}

func newGuided(t *testing.T) *guided {
	t.Helper()
	parent := t.TempDir()
	u := &guided{home: filepath.Join(parent, "home")}
	u.dir, u.data, u.sandbox = filepath.Join(parent, "release"), filepath.Join(u.home, ".local/state/tidekeeper-sandbox"), filepath.Join(u.home, ".local/bin/sandbox")
	path := filepath.Join(parent, "bin")
	for _, dir := range []string{u.home, path} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link(t, u.dir, folder(t))
	link(t, filepath.Join(parent, "next"), os.Getenv("RELEASE_NEXT"))
	errs := []error{os.Symlink(folder(t)+".pub", filepath.Join(u.dir, "release.pub"))}
	for _, tool := range tools {
		found, err := exec.LookPath(tool)
		errs = append(errs, err, os.Symlink(found, filepath.Join(path, tool)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Skipf("the guide cannot be followed: %v", err)
	}
	u.shell = console.Start(t, u.dir)
	u.shell.Must(t, "export HOME="+u.home+" PATH="+path, "unset SANDBOX_DATA_DIR XDG_STATE_HOME XDG_CACHE_HOME KUBECONFIG KUBECACHEDIR")
	t.Cleanup(func() {
		if len(processesOf(t, u.home)) > 0 {
			_ = exec.Command(u.sandbox, "down", "--data-dir="+u.data).Run()
		}
	})
	return u
}

// link creates a folder with links to all files of another folder.
func link(t *testing.T, dir, to string) {
	t.Helper()
	entries, err := os.ReadDir(to)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	for _, entry := range entries {
		err = errors.Join(err, os.Symlink(filepath.Join(to, entry.Name()), filepath.Join(dir, entry.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// do runs a command of the guide. Commands of the plugin that only read are repeated until the
// output is that of the page, because a reader is slower than this test.
func (u *guided) do(t *testing.T, step console.Step) {
	t.Helper()
	command := strings.Replace(step.Command, "ARCH=amd64", "ARCH="+runtime.GOARCH, 1)
	switch {
	case strings.HasPrefix(command, "sandbox up "):
		command += fmt.Sprintf(" --owner=%d", os.Getpid())
	case strings.HasPrefix(command, "kubectl apply ") && u.before == nil:
		u.eventuallyPopulated(t)
		u.before = u.objects(t)
	case command == "sandbox down":
		framework.Eventually(t, "all objects of the guide are gone", func() error {
			after := u.objects(t)
			maps.DeleteFunc(after, func(name string, _ bool) bool { return u.before[name] })
			if len(after) > 0 {
				return fmt.Errorf("left behind: %s", strings.Join(slices.Sorted(maps.Keys(after)), ", "))
			}
			return nil
		})
	}
	run := func() error {
		got, code := u.shell.Run(t, command)
		if code == 0 && console.Shows(got, step.Want, console.Constant) {
			return nil
		}
		return fmt.Errorf("exit code %d\n%s\nthe page shows:\n%s", code, strings.Join(got, "\n"), strings.Join(step.Want, "\n"))
	}
	what := fmt.Sprintf("INSTALL.md:%d: $ %s", step.Line, command)
	if command == "kubectl tide pools" || strings.HasPrefix(command, "kubectl tide check") {
		framework.Eventually(t, what, run)
	} else if err := run(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// files returns the files in the user's home directory, except the cache of kubectl.
func (u *guided) files(t *testing.T) (left []string) {
	t.Helper()
	err := filepath.WalkDir(u.home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".kube" {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}
