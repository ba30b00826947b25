// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readme runs the commands that the README, the page to try it and those of the kit show,
// one after the other in one shell, and compares what they print with what the page says they do.
package readme

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// elided is a line of a page in whose place any lines may be, or the end of a line, in place of any.
const elided = "…"

// step is a command of a page, and the lines that it prints.
type step struct {
	line    int
	command string
	want    []string
}

// steps returns the commands in the console blocks of a page.
func steps(page string) []step {
	var all []step
	console := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			console = line == "```console"
		case !console:
		case strings.HasPrefix(line, "$ "):
			all = append(all, step{line: i + 1, command: strings.TrimPrefix(line, "$ ")})
		case len(all) > 0:
			all[len(all)-1].want = append(all[len(all)-1].want, line)
		}
	}
	return all
}

// varying are what differs from run to run, and what is compared in its place.
var varying = []struct {
	find *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d( UTC|Z)`), "TIME"},
	{regexp.MustCompile(`\bv\d+\.\d+\.\d+\b`), "VERSION"},
	{regexp.MustCompile(`\b(?:today|tomorrow|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?: \d+ \w+)?) \d\d:\d\d(?: UTC)? \(in \w+\)`), "NEXT"},
	{regexp.MustCompile(`(?:/[\w.-]+)*/\.local/state/tidekeeper-sandbox`), "DIR"},
	{regexp.MustCompile(`\b\d+(\.\d+)? s\b`), "SECONDS"},
	{regexp.MustCompile(`(?m)\b\d+m?s(?: \([+-]\d+s\))?$|\b(?:\d+m)?\d+s(?: \([+-]\d+s\))?\b`), "DURATION"},
	{regexp.MustCompile(` +`), " "}, // The widths of columns follow from the others.
}

// constant returns a line without what differs from run to run.
func constant(line string) string {
	for _, v := range varying {
		line = v.find.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// shows reports whether the output is what the page shows.
func shows(got, want []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == elided {
		for i := range len(got) + 1 {
			if shows(got[i:], want[1:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && showsLine(got[0], want[0]) && shows(got[1:], want[1:])
}

func showsLine(got, want string) bool {
	if begin, ok := strings.CutSuffix(want, elided); ok {
		return strings.HasPrefix(constant(got), constant(begin))
	}
	return constant(got) == constant(want)
}

// writes are the commands of the plugin that write.
var writes = regexp.MustCompile(`^kubectl tide (?:freeze|thaw|restarts (?:now|suspend|resume)) `)

// repeatable reports whether a command only reads: it is run again until what it shows is
// what the page shows, as a reader is slower than this test.
func repeatable(command string) bool {
	reads := strings.HasPrefix(command, "kubectl tide ") && !writes.MatchString(command)
	return reads || strings.HasPrefix(command, "kubectl get ") || strings.HasPrefix(command, "kubectl auth can-i ")
}

// answers are the commands whose exit code 2 is an answer: something would change, or wait, or be missed.
var answers = regexp.MustCompile(`kubectl tide (?:pools (?:plan|loss)|restarts (?:gates|forecast)) `)

// built are the commands whose programs are there already.
var built = []string{"make build", "go build -o bin/manager ./cmd"}

// The README shows a pool and a restart on a cluster that has workers, a Deployment, and Tidekeeper.
func TestREADME(t *testing.T) {
	dir := checkout(t)
	_, manifest, _ := strings.Cut(read(t, "README.md"), "\n```yaml\n")
	manifest, _, found := strings.Cut(manifest, "```\n")
	if !found {
		t.Fatal("the README has no manifest")
	}
	if err := os.WriteFile(filepath.Join(dir, "pool-and-restart.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	sh := startShell(t, dir)
	for _, command := range []string{
		`export PATH="$PWD/bin:$PATH" KUBECONFIG="$PWD/kubeconfig"`,
		"sandbox up --nodes 3 --detach --kubeconfig kubeconfig",
		"kubectl apply -k config/crd",
		"tidekeeper 2> tidekeeper.log &",
		"kubectl label node node-1 node-2 node-role.kubernetes.io/worker=",
		"kubectl apply -f hack/demo/web.yaml",
	} {
		if out, code := sh.run(t, command); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", command, code, strings.Join(out, "\n"))
		}
	}
	follow(t, "README.md", 3, sh)
}

func TestTryIt(t *testing.T) {
	follow(t, "docs/tasks/try-it.md", 12, startShell(t, checkout(t)))
}

// The README of the kit is followed with its example, in the folder of the kit.
func TestKitREADME(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	project(t, filepath.Join(dir, "examples", "guestbook"))
	follow(t, "sandbox/README.md", 8, startShell(t, dir))
}

// The quickstart is followed with a project that is laid out as kubebuilder does it, whose own make
// build puts its program into the project's bin.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	project(t, filepath.Join(dir, "guestbook"))
	follow(t, "sandbox/docs/quickstart.md", 8, startShell(t, dir))
}

// project puts the example of a project into a folder, with its program.
func project(t *testing.T, folder string) {
	t.Helper()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(framework.Root(), "sandbox", "examples", "guestbook"))); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(framework.Build(t, "./sandbox/examples/guestbook/cmd"), filepath.Join(folder, "bin", "manager")); err != nil {
		t.Fatal(err)
	}
}

// read returns the text of a page, by its path from the root.
func read(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(framework.Root(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// follow runs the commands that a page shows in a shell, of which there must be at least that many, and
// compares what they print.
func follow(t *testing.T, name string, least int, sh *shell) {
	t.Helper()
	followWith(t, name, least, sh, func(string) {})
}

// followWith is follow, and calls a function with each command before it is run.
func followWith(t *testing.T, name string, least int, sh *shell, before func(command string)) {
	t.Helper()
	all := steps(read(t, name))
	if len(all) < least {
		t.Fatalf("%s has %d commands", name, len(all))
	}
	for _, s := range all {
		if slices.Contains(built, s.command) {
			continue
		}
		before(s.command)
		do := func() error {
			got, code := sh.run(t, s.command)
			if (code == 0 || code == 2 && answers.MatchString(s.command)) && shows(got, s.want) {
				return nil
			}
			return fmt.Errorf("exit code %d\n%s\nthe page shows:\n%s", code, strings.Join(got, "\n"), strings.Join(s.want, "\n"))
		}
		what := fmt.Sprintf("%s:%d: $ %s", name, s.line, s.command)
		if repeatable(s.command) {
			framework.EventuallyWithin(t, 5*time.Minute, what, do)
		} else if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// checkout returns a directory that looks to the commands like a checkout after make build.
func checkout(t *testing.T) string {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	for _, name := range []string{"charts", "config", "hack"} {
		if err := os.Symlink(filepath.Join(framework.Root(), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	binary := func(variable, name string) string {
		if path := os.Getenv(variable); path != "" {
			return path
		}
		return filepath.Join(framework.Root(), "bin", name)
	}
	bin := filepath.Join(dir, "bin")
	write := func(name, script string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sandbox := binary("SANDBOX_BIN", "sandbox")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// The sandbox is kubectl when it is started under that name.
	if err := os.Symlink(sandbox, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary("TIDE_BIN", "kubectl-tide"), filepath.Join(bin, "kubectl-tide")); err != nil {
		t.Fatal(err)
	}
	write("helm", fmt.Sprintf(`HOME=%s exec %s "$@"`, home, binary("HELM_BIN", "helm")))
	// On ports that are free, and on loopback only; and gone when this test is.
	write("sandbox", fmt.Sprintf(`export HOME=%s
unset SANDBOX_DATA_DIR XDG_STATE_HOME
case $1 in up) shift; exec %s up --owner %d "$@";; esac
exec %s "$@"`, home, sandbox, os.Getpid(), sandbox))
	write("tidekeeper", fmt.Sprintf(`exec %s --metrics-bind-address 127.0.0.1:0 --health-probe-bind-address 127.0.0.1:0 "$@"`, binary("TIDEKEEPER_BIN", "tidekeeper")))
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(bin, "sandbox"), "down")
		down.Dir = dir
		_ = down.Run()
	})
	return dir
}

// shell is a running shell.
type shell struct {
	in     io.Writer
	out    *bufio.Scanner
	marker string
}

func startShell(t *testing.T, dir string) *shell {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TZ=UTC", "BASH_ENV=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	return &shell{in: in, out: bufio.NewScanner(out), marker: fmt.Sprintf("done-%d", os.Getpid())}
}

// run runs a command, and returns the lines that it printed and its exit code.
func (s *shell) run(t *testing.T, command string) (lines []string, code int) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "%s\necho %s $?\n", command, s.marker); err != nil {
		t.Fatal(err)
	}
	for s.out.Scan() {
		line := s.out.Text()
		if rest, ok := strings.CutPrefix(line, s.marker+" "); ok {
			_, _ = fmt.Sscan(rest, &code)
			return lines, code
		}
		lines = append(lines, line)
	}
	t.Fatalf("the shell has ended after: %s\n%s", command, strings.Join(lines, "\n"))
	return nil, 0
}

// A test that accepts anything would find nothing.
func TestShows(t *testing.T) {
	lines := func(text string) []string { return strings.Split(text, "\n") }
	for _, tt := range []struct {
		name, got, want string
		shows           bool
	}{
		{"the same", "a\nb", "a\nb", true},
		{"another", "a\nc", "a\nb", false},
		{"more", "a\nb\nc", "a\nb", false},
		{"more, left out", "a\nb\nc", "a\n…", true},
		{"in the middle", "a\nb\nc\nd", "a\n…\nd", true},
		{"none left out", "a\nd", "a\n…\nd", true},
		{"the wrong end", "a\nb\nc", "a\n…\nd", false},
		{"another time", "at 2026-11-22T07:24:57Z, 7s", "at 2027-01-02T00:00:00Z, 12s", true},
		{"the end of a line left out", "a bc\nd", "a b…\nd", true},
		{"the start of a line is another", "a cc", "a b…", false},
		{"another percentage", "worker  18%", "worker  19%", false},
	} {
		if got := shows(lines(tt.got), lines(tt.want)); got != tt.shows {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
