// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plot draws the plots in test/scale/performance.md, test/rotate/rotation.md and
// test/room/answers.md from recorded benchmark runs, and writes the runs' tables into these pages.
//
//	plot scale RESULTS PAGE
//	plot rotation RESULTS PAGE
//	plot room RESULTS PAGE
//
// RESULTS is the directory with the recorded runs. PAGE is the path of the Markdown page. The plots
// are written to a directory next to the page that has the page's name.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"log"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// figure is a value measured by the benchmark, with its limit and another value for comparison.
type figure struct {
	Key, What, Unit, LimitIs, BesideIs string
	Value, Limit, Beside, Within       float64
	Most                               *float64
	// Pairs lists Value as a multiple of Limit in pairs of measurements, if there was more than one.
	Pairs []float64
}

// ratio returns the value as a multiple of the limit: the median of the pairs, if there are pairs.
func (f *figure) ratio() float64 {
	if len(f.Pairs) == 0 {
		return f.Value / f.Limit
	}
	return slices.Sorted(slices.Values(f.Pairs))[(len(f.Pairs)-1)/2]
}

// isWithin reports whether the value is at most Within times the limit, also if both are 0.
func (f *figure) isWithin() bool {
	if len(f.Pairs) > 0 {
		return f.ratio() <= f.Within
	}
	return f.Value <= f.Within*f.Limit
}

// benchmark is a recorded run of the benchmark.
type benchmark struct {
	Scale, Load                   string
	Nodes, Pods, Schedules, Cores int
	Figures                       []figure
}

func (r *benchmark) figure(key string) (figure, bool) {
	for _, f := range r.Figures {
		if f.Key == key {
			return f, true
		}
	}
	return figure{}, false
}

// sizes lists the scales at which the benchmark runs, from small to large.
var sizes = []string{"small", "medium", "full"}

func main() {
	pages := map[string]func(results, page string) error{"scale": drawScale, "rotation": drawRotation, "room": drawRoom}
	if len(os.Args) != 4 || pages[os.Args[1]] == nil {
		log.Fatal("usage: plot scale|rotation|room RESULTS PAGE")
	}
	if err := pages[os.Args[1]](os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

// drawScale draws the charts, and writes the tables of all runs into the page.
func drawScale(results, page string) error {
	runs, err := recordedRuns[benchmark](results, sizes)
	if err != nil {
		return err
	}
	dir, err := folderOf(page)
	if err != nil {
		return err
	}
	for _, c := range charts {
		if err := c.draw(runs, dir); err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
	}
	tables := map[string][]byte{}
	for _, r := range runs {
		tables["SCALE="+r.Scale] = r.table()
	}
	return writeTables(tables, page)
}

// recordedRuns returns the recorded runs of the given sizes, without sizes that are not recorded.
func recordedRuns[Run any](results string, sizes []string) ([]Run, error) {
	var runs []Run
	for _, size := range sizes {
		text, err := os.ReadFile(filepath.Join(results, size+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var r Run
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s.json: %w", size, err)
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no recorded run in %s", results)
	}
	return runs, nil
}

// folderOf creates the directory for the plots of a page, and returns its path.
func folderOf(page string) (string, error) {
	dir := strings.TrimSuffix(page, filepath.Ext(page))
	return dir, os.MkdirAll(dir, 0o755)
}

// chart describes a plot with one or more lines.
type chart struct {
	file, title, x, y string
	// size returns a run's value on the x axis.
	size  func(benchmark) int
	lines []line
}

type line struct {
	name  string
	value func(benchmark) float64
}

func value(key string) func(benchmark) float64 {
	return func(r benchmark) float64 { f, _ := r.figure(key); return f.Value }
}

func limit(key string) func(benchmark) float64 {
	return func(r benchmark) float64 { f, _ := r.figure(key); return f.Limit }
}

func beside(key string) func(benchmark) float64 {
	return func(r benchmark) float64 { f, _ := r.figure(key); return f.Beside }
}

func nodes(r benchmark) int     { return r.Nodes }
func pods(r benchmark) int      { return r.Pods }
func schedules(r benchmark) int { return r.Schedules }

var charts = []chart{
	{"label.svg", "A label to all nodes of a pool", "nodes", "seconds", nodes, []line{
		{"Tidekeeper", value("label")}, {"bare client, 32 at a time", limit("label")},
		{"one by one", value("label-one-by-one")}, {"one by one, client-go's limits", beside("label")},
	}},
	{"memory.svg", "Memory", "pods", "MiB", pods, []line{
		{"resident", value("memory")}, {"live heap", value("memory-live")}, {"cache", value("memory-cache")}, {"the pods as stored", limit("memory")},
	}},
	{"startup.svg", "Start-up to the first correct status", "pods", "seconds", pods, []line{
		{"Tidekeeper", value("startup")}, {"bare list", limit("startup")},
	}},
	{"due.svg", "Schedules due at once, until all are patched", "schedules", "seconds", schedules, []line{
		{"Tidekeeper", value("due")}, {"bare client, same writes", limit("due")}, {"bare client, patch only", beside("due")},
	}},
	{"event.svg", "One pod event, from the cache to the sums", "pods", "nanoseconds", pods, []line{
		{"Tidekeeper", func(r benchmark) float64 { f, _ := r.figure(fmt.Sprintf("event-%d", r.Pods)); return f.Value }},
	}},
}

// colours lists the colors of the lines, which people with color blindness can distinguish (Okabe
// and Ito).
var colours = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255}, color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255}, color.RGBA{R: 204, G: 121, B: 167, A: 255},
}

// draw draws the chart with logarithmic axes. Proportional growth then appears as a straight line
// parallel to the diagonal, and a constant as a horizontal line.
func (c chart) draw(runs []benchmark, dir string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	least, most := math.Inf(+1), 0.0
	for i, l := range c.lines {
		var points plotter.XYs
		for _, r := range runs {
			if y := l.value(r); y > 0 {
				points = append(points, plotter.XY{X: float64(c.size(r)), Y: y})
				least, most = math.Min(least, y), math.Max(most, y)
			}
		}
		if len(points) == 0 {
			continue
		}
		drawn, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		drawn.Color, drawn.Width = colours[i], vg.Points(1.5)
		marks.Color, marks.Shape = colours[i], draw.CircleGlyph{}
		p.Add(drawn, marks)
		p.Legend.Add(l.name, drawn, marks)
	}
	if most == 0 {
		return errors.New("nothing to draw")
	}
	// The y axis covers entire decades, with room for the legend at the top.
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most))+1)
	return p.Save(14*vg.Centimeter, 10*vg.Centimeter, filepath.Join(dir, c.file))
}

// writeTables writes each run's table between its markers in the page. The tables are named by the
// variable with which the run is made, such as "SCALE=full".
func writeTables(tables map[string][]byte, page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		begin, end := fmt.Appendf(nil, "<!-- table of %s -->\n", name), []byte("<!-- end of the table -->")
		head, rest, found := bytes.Cut(text, begin)
		if !found {
			continue
		}
		_, tail, found := bytes.Cut(rest, end)
		if !found {
			return fmt.Errorf("%s: the table of %s has no end marker", page, name)
		}
		text = bytes.Join([][]byte{head, begin, tables[name], end, tail}, nil)
	}
	return os.WriteFile(page, text, 0o644)
}

func (r *benchmark) table() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%d nodes, %d pods, %d schedules; %d cores, shared with everything else, load average %s at the start:\n\n",
		r.Nodes, r.Pods, r.Schedules, r.Cores, r.Load)
	fmt.Fprintln(&out, "| what | measured | limit | × | to reach | instead |\n|---|---|---|---|---|---|")
	for _, f := range r.Figures {
		ratio, target := "", ""
		if f.Limit > 0 {
			ratio = fmt.Sprintf("%.2f", f.ratio())
		}
		if len(f.Pairs) > 1 {
			ratio += fmt.Sprintf(" (%.2f to %.2f)", slices.Min(f.Pairs), slices.Max(f.Pairs))
		}
		reached := "reached"
		switch {
		case f.Within > 0:
			target = fmt.Sprintf("at most %g × the limit", f.Within)
			if !f.isWithin() {
				reached = "**missed**"
			}
		case f.Most != nil:
			target = strings.TrimSpace(fmt.Sprintf("at most %g %s", *f.Most, f.Unit))
			if f.Value > *f.Most {
				reached = "**missed**"
			}
		}
		if target != "" {
			target += ": " + reached
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", f.What, number(f.Value, f.Unit), reference(f.Limit, f.Unit, f.LimitIs), ratio, target, reference(f.Beside, f.Unit, f.BesideIs))
	}
	fmt.Fprintln(&out)
	return out.Bytes()
}

// reference formats a value with its description. It returns "" if the description is empty.
func reference(value float64, unit, is string) string {
	if is == "" {
		return ""
	}
	return number(value, unit) + ", " + is
}

// number formats a value with only as many digits as are significant.
func number(value float64, unit string) string {
	digits := 0
	switch {
	case value == math.Trunc(value):
	case value < 1:
		digits = 3
	case value < 10:
		digits = 2
	case value < 100:
		digits = 1
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, value, unit))
}
