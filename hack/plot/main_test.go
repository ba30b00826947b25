// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded is the folder with the recorded runs of the benchmark of speed and size.
const recorded = "../../test/scale/results"

// TestPageHasWhatIsRecorded checks that the tables and plots of each page match the recorded runs.
func TestPageHasWhatIsRecorded(t *testing.T) {
	for _, tt := range []struct {
		results, written string
		draw             func(results, page string) error
	}{
		{recorded, "../../test/scale/performance.md", drawScale},
		{"../../test/rotate/results", "../../test/rotate/rotation.md", drawRotation},
	} {
		before := read(t, tt.written)
		page := filepath.Join(t.TempDir(), "page.md")
		for _, text := range []string{before, withoutTables(before)} {
			write(t, page, text)
			if err := tt.draw(tt.results, page); err != nil {
				t.Fatal(err)
			}
			if read(t, page) != before {
				t.Errorf("%s has other tables than those of %s: make plots", tt.written, tt.results)
			}
		}
		plots, err := filepath.Glob(filepath.Join(filepath.Dir(page), "page", "*.svg"))
		if err != nil || len(plots) == 0 {
			t.Fatalf("no plots were drawn: %v", err)
		}
		folder := strings.TrimSuffix(tt.written, ".md")
		for _, plot := range plots {
			if name := filepath.Join(folder, filepath.Base(plot)); read(t, plot) != read(t, name) {
				t.Errorf("%s is another plot than that of %s: make plots", name, tt.results)
			}
		}
	}
}

// withoutTables returns a page with the contents of its tables removed.
func withoutTables(page string) string {
	var rest strings.Builder
	inTable := false
	for line := range strings.Lines(page) {
		inTable = inTable && !strings.HasPrefix(line, "<!-- end of the table")
		if !inTable {
			rest.WriteString(line)
		}
		inTable = inTable || strings.HasPrefix(line, "<!-- table of")
	}
	return rest.String()
}

// TestTables checks that the page gets a table for each run, which shows the targets and whether
// the run reached them.
func TestTables(t *testing.T) {
	results, page := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	write(t, filepath.Join(results, "small.json"), `{"scale": "small", "nodes": 100, "pods": 3000, "schedules": 200, "cores": 2, "load": "0.32", "figures": [
		{"key": "label", "what": "a label", "value": 0.25, "unit": "s", "limit": 0.2, "limitIs": "a bare client", "within": 1.2, "beside": 8.084, "besideIs": "one by one"},
		{"key": "memory", "what": "memory", "value": 58.32, "unit": "MiB", "limit": 18, "limitIs": "the pods", "most": 180},
		{"key": "memory-live", "what": "live heap", "value": 9.68, "unit": "MiB"},
		{"key": "startup", "what": "start-up", "value": 0.5, "unit": "s", "limit": 0.5, "limitIs": "a bare list", "within": 1, "pairs": [1.25, 0.75, 0.9, 1.1, 0.95]},
		{"key": "due", "what": "due", "value": 0.1, "unit": "s"},
		{"key": "rest-writes", "what": "writes", "value": 2, "most": 0},
		{"key": "event-3000", "what": "an event", "value": 2571, "unit": "ns"}]}`)
	const begin, end = "<!-- table of SCALE=small -->\n", "<!-- end of the table -->\n"
	write(t, page, "before\n"+begin+"old\n"+end+"after\n")
	if err := drawScale(results, page); err != nil {
		t.Fatal(err)
	}
	want := "before\n" + begin + `
100 nodes, 3000 pods, 200 schedules; 2 cores, shared with everything else, load average 0.32 at the start:

| what | measured | limit | × | to reach | instead |
|---|---|---|---|---|---|
| a label | 0.250 s | 0.200 s, a bare client | 1.25 | at most 1.2 × the limit: **missed** | 8.08 s, one by one |
| memory | 58.3 MiB | 18 MiB, the pods | 3.24 | at most 180 MiB: reached |  |
| live heap | 9.68 MiB |  |  |  |  |
| start-up | 0.500 s | 0.500 s, a bare list | 0.95 (0.75 to 1.25) | at most 1 × the limit: reached |  |
| due | 0.100 s |  |  |  |  |
| writes | 2 |  |  | at most 0: **missed** |  |
| an event | 2571 ns |  |  |  |  |

` + end + "after\n"
	if got := read(t, page); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	for _, c := range charts {
		if plot := read(t, filepath.Join(filepath.Dir(page), "page", c.file)); !strings.Contains(plot, "<svg") || !strings.Contains(plot, c.title) {
			t.Errorf("%s is no plot of %q", c.file, c.title)
		}
	}
}

// TestWhatIsMissing checks that missing or invalid input is reported, and that the page remains
// unchanged in this case.
func TestWhatIsMissing(t *testing.T) {
	for _, tt := range []struct{ name, file, run, page, want string }{
		{"no run", "other.json", "{}", "", "no recorded run"},
		{"a run that cannot be read", "small.json", "{", "", "small.json: "},
		{"nothing measured", "small.json", "{}", "", "nothing to draw"},
		{"no end of the table", "full.json", read(t, filepath.Join(recorded, "full.json")), "<!-- table of SCALE=full -->\n", "has no end marker"},
	} {
		results, page := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
		write(t, filepath.Join(results, tt.file), tt.run)
		write(t, page, tt.page)
		if err := drawScale(results, page); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if read(t, page) != tt.page {
			t.Errorf("%s: the page was changed", tt.name)
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
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
