// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

const (
	aRotation = `{"size": "small", "nodes": 6, "workloads": 4, "pods": 9, "ready": 1, "timeout": 3, "cores": 2, "load": "0.32", "ways": [
		{"key": "drain", "title": "` + "`kubectl drain`" + `", "down": [2.5, 1], "downBy": {"single": 1, "other": 1}, "deleted": 12, "toMove": 11, "stuck": ["web-1"], "seconds": 40.25, "least": 12},
		{"key": "taint", "title": "a taint", "down": [3, 3, 2], "downBy": {"single": 2, "blocked": 1}, "violations": 7, "deleted": 9, "toMove": 9, "leftClosed": ["web-1", "web-2"], "seconds": 4, "least": 12},
		{"key": "maintenance", "title": "NodeMaintenance", "down": [], "deleted": 9, "toMove": 9, "seconds": 13.1, "least": 12},
		{"key": "killed", "title": "NodeMaintenance, killed", "down": [], "deleted": 9, "toMove": 9, "seconds": 30, "least": 12}]}`
	begins, ends = "<!-- table of SIZE=small -->\n", "<!-- end of the table -->\n"
)

// TestRotationTable checks that the page gets a table with a row for each way, and that the plot has
// a line for each way, but one line only for all ways in which no workload was down.
func TestRotationTable(t *testing.T) {
	results, page := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	write(t, filepath.Join(results, "small.json"), aRotation)
	write(t, page, begins+ends)
	if err := drawRotation(results, page); err != nil {
		t.Fatal(err)
	}
	want := begins + `
6 nodes, 4 workloads with 9 pods, which need 1 s to be ready, ` + "`--timeout=3s`" + `; 2 cores, shared with everything else, load average 0.32 at the start:

| way | workloads down | … whose budget allows nothing | … of the others, with one replica | most of a workload | in all | budgets violated | pods deleted | had to move | nodes stuck | left cordoned | took | at best |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
| ` + "`kubectl drain`" + ` | 2 | 0 | 1 | 2.50 s | 3.50 s | 0 | 12 | 11 | 1 | 0 | 40.2 s | 12 s |
| a taint | 3 | 1 | 2 | 3 s | 8 s | 7 | 9 | 9 | 0 | 2 | 4 s | 12 s |
| NodeMaintenance | 0 | 0 | 0 | 0 s | 0 s | 0 | 9 | 9 | 0 | 0 | 13.1 s | 12 s |
| NodeMaintenance, killed | 0 | 0 | 0 | 0 s | 0 s | 0 | 9 | 9 | 0 | 0 | 30 s | 12 s |

` + ends
	if got := read(t, page); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	plot := read(t, filepath.Join(filepath.Dir(page), "page", "down.svg"))
	for _, legend := range []string{">kubectl drain<", ">a taint<", ">NodeMaintenance<"} {
		if !strings.Contains(plot, legend) {
			t.Errorf("the plot has no line %q", legend)
		}
	}
	if strings.Contains(plot, "killed") {
		t.Error("the plot has two lines of ways in which no workload was down")
	}
}

// TestPoints checks that each workload has a step, and that equal steps are one line.
func TestPoints(t *testing.T) {
	w := way{Down: []float64{3, 3, 2}}
	want := plotter.XYs{{X: 0, Y: 3}, {X: 2, Y: 3}, {X: 2, Y: 2}, {X: 3, Y: 2}, {X: 3, Y: 0}, {X: 5, Y: 0}}
	if got := w.points(5); !slices.Equal(got, want) {
		t.Errorf("the points are %v, want %v", got, want)
	}
}
