// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// controls maps levels 1 and 2 of the OSPS Baseline v2026.02.19 to the IDs of their controls.
var controls = map[string]string{
	"1": "AC-01.01 AC-02.01 AC-03.01 AC-03.02 BR-01.01 BR-01.03 BR-03.01 BR-03.02 BR-07.01 DO-01.01 DO-02.01 GV-02.01 GV-03.01 " +
		"LE-02.01 LE-02.02 LE-03.01 LE-03.02 QA-01.01 QA-01.02 QA-02.01 QA-04.01 QA-05.01 QA-05.02 VM-02.01",
	"2": "AC-04.01 BR-02.01 BR-04.01 BR-05.01 BR-06.01 DO-06.01 DO-07.01 GV-01.01 GV-01.02 GV-03.02 LE-01.01 QA-03.01 QA-06.01 " +
		"SA-01.01 SA-02.01 SA-03.01 VM-01.01 VM-03.01 VM-04.01",
}

// TestConformanceIsComplete checks CONFORMANCE.md: it lists each control, links to evidence for
// each control that is met, and has the right totals in its overview. TestNamedFilesExist checks
// the links.
func TestConformanceIsComplete(t *testing.T) {
	text, err := os.ReadFile("../CONFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| OSPS-(\S+) \| ([a-z ]+) \| ([^|]+) \|(.*)\|$`)
	for level, want := range controls {
		_, section, _ := strings.Cut(string(text), "\n## Level "+level+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var ids []string
		verdicts := map[string]int{}
		for _, cells := range row.FindAllStringSubmatch(section, -1) {
			ids = append(ids, cells[1])
			verdicts[cells[2]]++
			if cells[2] == "met" && !strings.Contains(cells[4], "](") {
				t.Errorf("%s is met, and nothing shows it", cells[1])
			}
		}
		if !slices.Equal(ids, strings.Fields(want)) {
			t.Errorf("level %s has the controls %q, want %q", level, ids, want)
		}
		overview := fmt.Sprintf("\n| %s | %d | %d | %d | %d |\n", level, len(ids), verdicts["met"], verdicts["not met"], verdicts["not applicable"])
		if !strings.Contains(string(text), overview) {
			t.Errorf("the overview has not the row%s", overview)
		}
	}
}

// TestNoExecutablesAreKept checks that the repository contains no binary executables, which
// OSPS-QA-05.01 requires.
func TestNoExecutablesAreKept(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skip("git lists no files here: ", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		head := make([]byte, 4)
		file, err := os.Open(filepath.Join(root, name))
		if err != nil {
			continue // deleted in the worktree, but still in the index
		}
		_, _ = file.Read(head)
		_ = file.Close()
		for _, magic := range []string{"\x7fELF", "MZ\x90\x00", "\xcf\xfa\xed\xfe"} {
			if bytes.HasPrefix(head, []byte(magic)) {
				t.Errorf("%s is an executable", name)
			}
		}
	}
}
