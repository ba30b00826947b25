// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// said returns the output of Opened.
func said(b *Book[*wrong]) string {
	var text bytes.Buffer
	b.Opened(&text, tool.Cases)
	return text.String()
}

// TestOpenWithOtherContents checks that cases are repeated after an input has changed, starting
// with cases that had findings.
func TestOpenWithOtherContents(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, []Played{{ID: "a"}, {ID: "b", Found: true}, {ID: "c", Found: true}}, find("b", "lost", 1, 1), find("c", "late", 1, 1))
	if same := open(t, dir, of("one", "1", "1")); len(same.Played) != 3 || len(same.Again) != 0 || !strings.Contains(said(same), "3 cases were played before, the last on 2") || !strings.Contains(said(same), "--fresh") {
		t.Errorf("with the same there are %+v, %d again; it says %q", same.Result, len(same.Again), said(same))
	}
	for range 2 { // The second iteration simulates an interruption before the first case.
		other := open(t, dir, of("one", "2", "1"))
		if len(other.Played)+len(other.Findings) != 0 || len(other.Again) != 2 || !strings.Contains(said(other), "All cases are played again, first those with which something was found before: 2.") {
			t.Fatalf("with another program there are %+v, %d again; it says %q", other.Result, len(other.Again), said(other))
		}
	}
	other := open(t, dir, of("one", "2", "1"))
	for _, p := range []Played{{ID: "b"}, {ID: "c", Error: "the machine is slow"}} {
		if err := other.Note(p); err != nil {
			t.Fatal(err)
		}
	}
	changed := open(t, dir, of("one", "2", "2"))
	if len(changed.Again) != 1 || changed.Again[0].ID != "c" || !strings.Contains(said(changed), "Changed since 2") || !strings.Contains(said(changed), ": what is installed. All") {
		t.Errorf("to be played first: %+v; it says %q", changed.Again, said(changed))
	}
	about := of("two")
	about.Fresh = true
	if fresh := open(t, dir, about); len(fresh.Played)+len(fresh.Findings)+len(fresh.Again) != 0 || said(fresh) != "" {
		t.Errorf("begun from the start it has %+v, %d again; it says %q", fresh.Result, len(fresh.Again), said(fresh))
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("there are %q, %v", left, err)
	}
}

// TestMergeContents checks that results can be merged if only the hashes of programs differ,
// because each machine may have compiled its own program.
func TestMergeContents(t *testing.T) {
	first, second, third := t.TempDir(), t.TempDir(), t.TempDir()
	compiled := of("one", "2", "1")
	compiled.Contents[theCommands], compiled.Contents[theSandbox] = "2", "2"
	open(t, first, of("one", "1", "1"))
	open(t, second, compiled)
	open(t, third, of("one", "1", "2"))
	if _, err := tool.Merge([]string{first, second}); err != nil {
		t.Error(err)
	}
	if _, err := tool.Merge([]string{first, third}); err == nil || !strings.Contains(err.Error(), "have the results of another thing each") {
		t.Errorf("they were merged: %v", err)
	}
}

// TestContents checks that the hashes cover the program, arguments that are files, manifests,
// including manifests to which kustomizations refer, the programs of shell commands, and the
// sandbox itself. Files that a command only reads or writes do not count.
func TestContents(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		mode := os.FileMode(0o600)
		if filepath.Dir(name) == "bin" {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("BIN", "bin")
	for name, text := range map[string]string{
		"operator": "1", "config.yaml": "1", "flags": "1", "unread": "1", "config/crd/crd.yaml": "1",
		"config/default/kustomization.yaml": "resources: [../crd, deployment.yaml]\npatches: [{path: ../patch.yaml}]\n", "config/default/deployment.yaml": "1", "config/patch.yaml": "1",
		"bin/webhook": "1", "bin/other": "1", "log": "1", "bin/unread": "1",
	} {
		write(name, text)
	}
	about := func(judging string) *About {
		t.Helper()
		a, err := NewAbout(Inputs{Command: []string{"./operator", "config.yaml", "--flags=flags"}, Installed: []string{"config/default"}, Commands: []string{"$BIN/webhook --port=1", "sh -c './bin/other >>./log'"}, Subject: "shop", Judging: judging})
		if err != nil {
			t.Fatal(err)
		}
		return &a
	}
	before := about("1s")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	write("copy", string(self))
	if kit, err := hashFiles([]string{"copy"}); err != nil || before.Contents[theSandbox] != kit {
		t.Errorf("the contents of the sandbox are %q, %v, want %q", before.Contents[theSandbox], err, kit)
	}
	for name, want := range map[string][]string{
		"unread": nil, "operator": {theProgram}, "config.yaml": {theProgram}, "flags": {theProgram},
		"config/crd/crd.yaml": {theInstalled}, "config/default/deployment.yaml": {theInstalled}, "config/patch.yaml": {theInstalled}, "config/crd/more.yaml": {theInstalled},
		"bin/webhook": {theCommands}, "bin/other": {theCommands}, "log": nil, "bin/unread": nil,
	} {
		write(name, "2")
		now := about("1s")
		if changed := now.changed(before); !slices.Equal(changed, want) {
			t.Errorf("%s has changed, and the contents that have are %q, want %q", name, changed, want)
		}
		before = now
	}
	if changed := about("2s").changed(before); !slices.Equal(changed, []string{theJudging}) {
		t.Errorf("a flag has changed, and the contents that have are %q", changed)
	}
}
