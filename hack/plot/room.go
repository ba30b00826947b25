// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"maps"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// answers is a recorded run of the benchmark that compares answers about room with the scheduler.
type answers struct {
	Size          string
	Worlds, First int
	WorldsPerSec  float64 `json:"worldsPerSecond"`
	Cores         int
	Methods       []answering
	AtMostBecause map[string]int
}

// answering counts how often a method of answering was right.
type answering struct {
	Name                              string
	Exact, AtMost, TooLittle, TooMuch int
}

// recordsOfRoom lists the records of the benchmark: the worlds that the scheduler's plugins judge,
// and the sample that kube-scheduler itself judges.
var recordsOfRoom = []string{"cases", "sample"}

// drawRoom draws the plot of the first record, and writes the tables of all into the page.
func drawRoom(results, page string) error {
	runs, err := recordedRuns[answers](results, recordsOfRoom)
	if err != nil {
		return err
	}
	dir, err := folderOf(page)
	if err != nil {
		return err
	}
	if err := runs[0].draw(filepath.Join(dir, "right.svg")); err != nil {
		return fmt.Errorf("right.svg: %w", err)
	}
	tables := map[string][]byte{}
	for _, r := range runs {
		tables[r.Size] = r.table()
	}
	return writeTables(tables, page)
}

// part is a part of a method's bar.
type part struct {
	name   string
	colour color.Color
	count  func(answering) int
}

var parts = []part{
	{"exact", colours[2], func(a answering) int { return a.Exact }},
	{"at most, not exceeded", colours[0], func(a answering) int { return a.AtMost }},
	{"too little", colours[1], func(a answering) int { return a.TooLittle }},
	{"too much", color.RGBA{R: 213, G: 94, B: 0, A: 255}, func(a answering) int { return a.TooMuch }},
}

// draw draws a bar for each method, the first at the top.
func (r *answers) draw(file string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("How many copies fit: answers in %d random clusters", r.Worlds)
	p.X.Label.Text = "percent of the answers"
	p.Legend.Top, p.Legend.Left = true, true
	p.Y.Padding = vg.Points(36) // other fonts than the one that is measured are wider
	methods := slices.Clone(r.Methods)
	slices.Reverse(methods)
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.Name
	}
	p.NominalY(names...)
	var below *plotter.BarChart
	for _, of := range parts {
		values := make(plotter.Values, len(methods))
		for i, m := range methods {
			values[i] = 100 * float64(of.count(m)) / float64(r.Worlds)
		}
		bars, err := plotter.NewBarChart(values, vg.Points(22))
		if err != nil {
			return err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, of.colour, 0
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		p.Add(bars)
		p.Legend.Add(of.name, bars)
	}
	p.X.Min, p.X.Max = 0, 100
	p.Y.Max += 1.6 // room for the legend
	return p.Save(18*vg.Centimeter, 9*vg.Centimeter, file)
}

func (r *answers) table() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%d random clusters from `SEED=%d`, %s a second on %d cores:\n\n", r.Worlds, r.First, number(r.WorldsPerSec, ""), r.Cores)
	fmt.Fprintln(&out, "| number of copies by | exact | at most, not exceeded | too little | too much |\n|---|---|---|---|---|")
	for _, m := range r.Methods {
		fmt.Fprintf(&out, "| %s |", m.Name)
		for _, of := range parts {
			fmt.Fprintf(&out, " %.1f %% |", 100*float64(of.count(m))/float64(r.Worlds))
		}
		fmt.Fprintln(&out)
	}
	for i, why := range slices.Sorted(maps.Keys(r.AtMostBecause)) {
		if i == 0 {
			fmt.Fprint(&out, "\n*At most* because of ")
		} else {
			fmt.Fprint(&out, ", ")
		}
		fmt.Fprintf(&out, "%s (%d)", why, r.AtMostBecause[why])
		if i == len(r.AtMostBecause)-1 {
			fmt.Fprintln(&out, ".")
		}
	}
	fmt.Fprintln(&out)
	return out.Bytes()
}
