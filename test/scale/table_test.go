// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// figure is one row of the benchmark's table.
type figure struct {
	// Key is the row's stable name, used to compare runs.
	Key  string `json:"key"`
	What string `json:"what"`
	// Value is the measured value, in Unit.
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Allocations is the number of allocations per event, or 0 if it is unknown.
	Allocations float64 `json:"allocations,omitempty"`
	// Limit is a lower bound of the value, measured in the same run; LimitIs describes it.
	Limit   float64 `json:"limit,omitempty"`
	LimitIs string  `json:"limitIs,omitempty"`
	// Pairs lists Value as a multiple of Limit in pairs of measurements, one of each in turn. It is
	// empty if each was measured once. With pairs, Value and Limit are medians.
	Pairs []float64 `json:"pairs,omitempty"`
	// Within is the maximum of Value as a multiple of Limit; Most is its absolute maximum. A row
	// with neither is only informational.
	Within float64  `json:"within,omitempty"`
	Most   *float64 `json:"most,omitempty"`
	// Beside is the value of an alternative that a user might choose; BesideIs describes it.
	Beside   float64 `json:"beside,omitempty"`
	BesideIs string  `json:"besideIs,omitempty"`
}

// ratio returns the value as a multiple of the limit: the median of the pairs, if there are pairs.
func (f *figure) ratio() float64 {
	if len(f.Pairs) > 0 {
		return percentile(f.Pairs, 50)
	}
	return f.Value / f.Limit
}

// ratioText formats the ratio, with the smallest and the largest of several pairs.
func (f *figure) ratioText() string {
	switch {
	case f.Limit == 0:
		return ""
	case len(f.Pairs) > 1:
		return fmt.Sprintf("%.2f (%.2f to %.2f)", f.ratio(), slices.Min(f.Pairs), slices.Max(f.Pairs))
	}
	return fmt.Sprintf("%.2f", f.ratio())
}

// pairsOf returns the ratios of measurements that were made in turn.
func pairsOf(values, limits []time.Duration) []float64 {
	pairs := make([]float64, len(values))
	for i := range values {
		pairs[i] = values[i].Seconds() / limits[i].Seconds()
	}
	return pairs
}

// isWithin reports whether the value is at most Within times the limit, also if both are 0.
func (f *figure) isWithin() bool {
	if len(f.Pairs) > 0 {
		return f.ratio() <= f.Within
	}
	return f.Value <= f.Within*f.Limit
}

// reached reports whether the row meets its target.
func (f *figure) reached() bool {
	return (f.Within == 0 || f.isWithin()) && (f.Most == nil || f.Value <= *f.Most)
}

func (f *figure) target() string {
	switch {
	case f.Within > 0:
		return fmt.Sprintf("at most %g × the limit", f.Within)
	case f.Most != nil:
		return fmt.Sprintf("at most %g %s", *f.Most, f.Unit)
	}
	return ""
}

func (f *figure) verdict() string {
	switch {
	case f.target() == "":
		return ""
	case f.reached():
		return "yes"
	}
	return "NO"
}

func (f *figure) number(value float64, is string) string {
	if is == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", number(value, f.Unit), is)
}

// number formats a value with the number of digits that suits its size.
func number(value float64, unit string) string {
	digits := 0
	switch {
	case value == 0:
	case value < 1:
		digits = 3
	case value < 10:
		digits = 2
	case value < 100:
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, value, unit)
}

// report is a recorded run of the benchmark.
type report struct {
	Scale     string `json:"scale"`
	Nodes     int    `json:"nodes"`
	Pods      int    `json:"pods"`
	Schedules int    `json:"schedules"`
	// Cores and Load describe the machine, which all processes of the run share.
	Cores   int      `json:"cores"`
	Load    string   `json:"load"`
	Figures []figure `json:"figures"`

	start time.Time
}

func (r *report) add(f figure) { r.Figures = append(r.Figures, f) }

func (r *report) print(t *testing.T) {
	t.Helper()
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\nSCALE=%s: %d nodes, %d pods, %d schedules; %d cores; load average %s at the start, %s at the end; %s in all\n\n",
		r.Scale, r.Nodes, r.Pods, r.Schedules, r.Cores, r.Load, framework.LoadAverage(t), time.Since(r.start).Round(time.Second))
	fmt.Fprintln(out, "WHAT\tMEASURED\tLIMIT\t×\tTO REACH\tREACHED\tINSTEAD")
	for _, f := range r.Figures {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.What, number(f.Value, f.Unit),
			f.number(f.Limit, f.LimitIs), f.ratioText(), f.target(), f.verdict(), f.number(f.Beside, f.BesideIs))
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

// save writes the report and the given files to the directory that OUT names, if OUT is set.
func (r *report) save(t *testing.T, files map[string][]byte) {
	t.Helper()
	dir := os.Getenv("OUT")
	if dir == "" {
		return
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	files[r.Scale+".json"] = append(text, '\n')
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func newReport(t *testing.T, w clusterSize) *report {
	return &report{
		Scale: scaleName(), Nodes: w.nodes, Pods: w.pods, Schedules: w.schedules,
		Cores: runtime.NumCPU(), Load: framework.LoadAverage(t), start: time.Now(),
	}
}
