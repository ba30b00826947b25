// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"text/tabwriter"
	"time"
)

// figure is one row of the table.
type figure struct {
	// Key is the stable name of the row, so that runs can be compared.
	Key  string `json:"key"`
	What string `json:"what"`
	// Value is the figure, in Unit.
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Allocations is how many allocations one event takes, if that is known.
	Allocations float64 `json:"allocations,omitempty"`
	// Limit is a value that cannot be improved on, measured in the same run; LimitIs says
	// how.
	Limit   float64 `json:"limit,omitempty"`
	LimitIs string  `json:"limitIs,omitempty"`
	// Within is the maximum of the value as a multiple of the limit, Most its absolute
	// maximum. A row with neither is informational.
	Within float64  `json:"within,omitempty"`
	Most   *float64 `json:"most,omitempty"`
	// Beside is the value of an alternative that a user might choose.
	Beside   float64 `json:"beside,omitempty"`
	BesideIs string  `json:"besideIs,omitempty"`
}

// reached reports whether the row meets its target.
func (f *figure) reached() bool {
	return (f.Within == 0 || f.Value <= f.Within*f.Limit) && (f.Most == nil || f.Value <= *f.Most)
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

// number formats a value with as many digits as are significant.
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

// report is a recorded run.
type report struct {
	Scale     string `json:"scale"`
	Nodes     int    `json:"nodes"`
	Pods      int    `json:"pods"`
	Schedules int    `json:"schedules"`
	// The machine, for all processes of the run.
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
		r.Scale, r.Nodes, r.Pods, r.Schedules, r.Cores, r.Load, loadAverage(t), time.Since(r.start).Round(time.Second))
	fmt.Fprintln(out, "WHAT\tMEASURED\tLIMIT\t×\tTO REACH\tREACHED\tINSTEAD")
	for _, f := range r.Figures {
		ratio := ""
		if f.Limit > 0 {
			ratio = fmt.Sprintf("%.2f", f.Value/f.Limit)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.What, number(f.Value, f.Unit),
			f.number(f.Limit, f.LimitIs), ratio, f.target(), f.verdict(), f.number(f.Beside, f.BesideIs))
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

// save writes the run and its other files to the directory that OUT names, if any.
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
		Cores: runtime.NumCPU(), Load: loadAverage(t), start: time.Now(),
	}
}
