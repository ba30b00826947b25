// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestCapabilityLevelsAreComplete checks test/capability-levels.md: each item names a test or is
// marked as not applicable or missing, and the totals in the overview are right.
func TestCapabilityLevelsAreComplete(t *testing.T) {
	text, err := os.ReadFile("../test/capability-levels.md")
	if err != nil {
		t.Fatal(err)
	}
	item := regexp.MustCompile(`\b([IV]+)\.\w+`)
	levels := strings.Split(string(text), "\n## Level ")
	if len(levels) != 6 {
		t.Fatalf("%d levels, want five", len(levels)-1)
	}
	for _, section := range levels[1:] {
		level, _, _ := strings.Cut(section, ":")
		shown, notApplicable, missing := 0, 0, 0
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) != 5 {
				continue
			}
			items := len(item.FindAllString(cells[1], -1))
			switch {
			case strings.Contains(cells[2], "*not applicable*"):
				notApplicable += items
			case strings.Contains(cells[2], "*missing*"):
				missing += items
			case items > 0:
				shown += items
				if !strings.Contains(cells[3], "`Test") {
					t.Errorf("no test shows %s", cells[1])
				}
			}
		}
		row := fmt.Sprintf("\n| %s | %d | %d | %d | %d |\n", level, shown+notApplicable+missing, shown, notApplicable, missing)
		if !strings.Contains(levels[0], row) {
			t.Errorf("the overview has not the row%s", row)
		}
	}
}
