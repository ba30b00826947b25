// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// rotation is a recorded run of the benchmark that rotates all nodes of a cluster.
type rotation struct {
	Size, Load                    string
	Nodes, Workloads, Pods, Cores int
	Classes                       map[string]int
	Ready, Timeout                float64
	Ways                          []way
}

// way is a way of rotating all nodes, with its figures.
type way struct {
	Key, Title          string
	Down                []float64 // seconds without a ready pod of each workload that was down, the longest first
	DownBy              map[string]int
	Violations, Deleted int
	ToMove              int
	Stuck, LeftClosed   []string
	Seconds, Least      float64
}

// rotationSizes lists the sizes of the benchmark, from small to large.
var rotationSizes = []string{"small", "full"}

// drawRotation draws the plot of the largest recorded run, and writes the tables of all runs into
// the page.
func drawRotation(results, page string) error {
	runs, err := recordedRuns[rotation](results, rotationSizes)
	if err != nil {
		return err
	}
	largest := runs[len(runs)-1]
	dir, err := folderOf(page)
	if err != nil {
		return err
	}
	if err := largest.draw(filepath.Join(dir, "down.svg")); err != nil {
		return fmt.Errorf("down.svg: %w", err)
	}
	tables := map[string][]byte{}
	for _, r := range runs {
		tables["SIZE="+r.Size] = r.table()
	}
	return writeTables(tables, page)
}

// draw draws the workloads of each way, from the workload that was down for the longest time.
// Of the ways in which no workload was down, only the first is drawn, because the lines are the
// same.
func (r *rotation) draw(file string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Rotation of %d nodes: seconds without a ready pod", r.Nodes)
	p.X.Label.Text, p.Y.Label.Text = fmt.Sprintf("%d workloads, the worst first", r.Workloads), "seconds"
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	drawn, unharmed := 0, false
	for _, w := range r.Ways {
		if len(w.Down) == 0 && unharmed {
			continue
		}
		unharmed = unharmed || len(w.Down) == 0
		if drawn == len(colours) {
			return fmt.Errorf("more than %d lines", len(colours))
		}
		line, err := plotter.NewLine(w.points(r.Workloads))
		if err != nil {
			return err
		}
		line.Color, line.Width = colours[drawn], vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(strings.ReplaceAll(w.Title, "`", ""), line)
		drawn++
	}
	p.X.Min, p.X.Max, p.Y.Min = 0, float64(r.Workloads), 0
	p.Y.Max = 1.1 * max(1, p.Y.Max)
	return p.Save(14*vg.Centimeter, 10*vg.Centimeter, file)
}

// points returns a step for each workload.
func (w *way) points(workloads int) plotter.XYs {
	var points plotter.XYs
	for i := range workloads {
		y := 0.0
		if i < len(w.Down) {
			y = w.Down[i]
		}
		// Equal steps are one line, which keeps the file small.
		if last := len(points) - 1; last > 0 && points[last].Y == y {
			points[last].X = float64(i + 1)
			continue
		}
		points = append(points, plotter.XY{X: float64(i), Y: y}, plotter.XY{X: float64(i + 1), Y: y})
	}
	return points
}

func (r *rotation) table() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%d nodes, %d workloads with %d pods, which need %g s to be ready, `--timeout=%gs`; %d cores, shared with everything else, load average %s at the start:\n\n",
		r.Nodes, r.Workloads, r.Pods, r.Ready, r.Timeout, r.Cores, r.Load)
	fmt.Fprintln(&out, "| way | workloads down | … whose budget allows nothing | … of the others, with one replica | most of a workload | in all | budgets violated | pods deleted | had to move | nodes stuck | left cordoned | took | at best |")
	fmt.Fprintln(&out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, w := range r.Ways {
		sum := 0.0
		for _, seconds := range w.Down {
			sum += seconds
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %s | %s | %d | %d | %d | %d | %d | %s | %s |\n",
			w.Title, len(w.Down), w.DownBy["blocked"], w.DownBy["single"], number(slices.Max(append(w.Down, 0)), "s"), number(sum, "s"),
			w.Violations, w.Deleted, w.ToMove, len(w.Stuck), len(w.LeftClosed), number(w.Seconds, "s"), number(w.Least, "s"))
	}
	fmt.Fprintln(&out)
	return out.Bytes()
}
