// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// report is a recorded run of the benchmark.
type report struct {
	Size      string `json:"size"`
	Nodes     int    `json:"nodes"`
	Workloads int    `json:"workloads"`
	Pods      int    `json:"pods"`
	// Classes has the number of workloads of each class.
	Classes map[string]int `json:"classes"`
	// Ready is the time in seconds that the containers of a pod need to be ready; Timeout that of
	// kubectl drain.
	Ready   float64 `json:"ready"`
	Timeout float64 `json:"timeout"`
	// Cores and Load describe the machine, which all processes of the run share.
	Cores int      `json:"cores"`
	Load  string   `json:"load"`
	Ways  []result `json:"ways"`

	start time.Time
	// rows has a row of figures for each workload and way.
	rows [][]string
}

// result has the figures of one way of rotating all nodes.
type result struct {
	Key   string `json:"key"`
	Title string `json:"title"`
	// Down has the time in seconds without a ready pod of each workload that was down, the longest
	// first; DownBy the number of these workloads by class.
	Down   []float64      `json:"down"`
	DownBy map[string]int `json:"downBy"`
	// Violations is the number of deletions that violated a budget.
	Violations int `json:"violations"`
	// Deleted is the number of pods that were deleted; ToMove is the number of pods that were on a
	// node when it was closed.
	Deleted int `json:"deleted"`
	ToMove  int `json:"toMove"`
	// Rotated is the number of nodes that were closed, and Rotations the number of times. Stuck lists the nodes that were not empty
	// before they were opened again; LeftClosed lists the nodes that are closed at the end.
	Rotated    int      `json:"rotated"`
	Rotations  int      `json:"rotations"`
	Stuck      []string `json:"stuck,omitempty"`
	LeftClosed []string `json:"leftClosed,omitempty"`
	// Seconds is the time from the first node that was closed to the last one that was opened;
	// Least is the least time in which the same is possible, see [Least].
	Seconds float64 `json:"seconds"`
	Least   float64 `json:"least"`

	// suffered has the effect on each workload of the world.
	suffered []Suffered
}

func newReport(t *testing.T, w *world) *report {
	t.Helper()
	r := &report{
		Size: sizeName(), Nodes: w.nodes, Workloads: len(w.applications), Pods: w.pods(), Classes: map[string]int{},
		Ready: w.ready.Seconds(), Timeout: w.timeout.Seconds(), Cores: runtime.NumCPU(), Load: framework.LoadAverage(t), start: time.Now(),
		rows: [][]string{{"way", "workload", "class", "replicas", "healthy", "seconds down", "outages", "pods deleted", "violations"}},
	}
	for _, a := range w.applications {
		r.Classes[a.class()]++
	}
	return r
}

// result computes the figures of a way from the history of its run.
func (w *world) result(by way, events []Event, began, ended time.Time) result {
	r := result{Key: by.key, Title: by.title, DownBy: map[string]int{}, Down: []float64{}, suffered: Measure(w.workloads(), events, began, ended)}
	for i, s := range r.suffered {
		r.Violations += s.Violations
		r.Deleted += s.Deleted
		if s.Outages > 0 {
			r.Down = append(r.Down, thousandths(s.Down))
			r.DownBy[w.applications[i].class()]++
		}
	}
	slices.SortFunc(r.Down, func(a, b float64) int { return cmp.Compare(b, a) })
	rotations := Rotations(events)
	closed := map[string]bool{}
	for _, rotation := range rotations {
		closed[rotation.Node] = true
	}
	r.Rotated, r.Stuck, r.LeftClosed, r.ToMove = len(closed), Stuck(rotations), LeftClosed(rotations), ToMove(rotations)
	r.Rotations = len(rotations)
	r.Seconds = thousandths(Span(rotations))
	r.Least = thousandths(Least(w.workloads(), rotations, Pace{Ready: initialized + w.ready, Gone: terminated, AtOnce: 1}))
	return r
}

// thousandths returns a duration in seconds, rounded to thousandths.
func thousandths(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// add adds the figures of a way.
func (r *report) add(w *world, way result) {
	r.Ways = append(r.Ways, way)
	for i, s := range way.suffered {
		a := w.applications[i]
		r.rows = append(r.rows, []string{
			way.Key, a.Name, a.class(), fmt.Sprint(a.Replicas), fmt.Sprint(a.Healthy),
			fmt.Sprint(thousandths(s.Down)), fmt.Sprint(s.Outages), fmt.Sprint(s.Deleted), fmt.Sprint(s.Violations),
		})
	}
}

// save writes the report, and a table of all workloads, to the directory that OUT names, if OUT is
// set.
func (r *report) save(t *testing.T) {
	t.Helper()
	dir := os.Getenv("OUT")
	if dir == "" {
		return
	}
	text, err := json.MarshalIndent(r, "", "  ")
	must(t, err)
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, r.Size+".json"), append(text, '\n'), 0o644))
	var table strings.Builder
	out := csv.NewWriter(&table)
	must(t, out.WriteAll(r.rows))
	must(t, os.WriteFile(filepath.Join(dir, r.Size+"-workloads.csv"), []byte(table.String()), 0o644))
}

func (r *report) print(t *testing.T) {
	t.Helper()
	fmt.Printf("\nSIZE=%s: %d nodes, %d workloads with %d pods, %g s until a pod is ready; %d cores, load average %s at the start, %s at the end; %s in all\n\n",
		r.Size, r.Nodes, r.Workloads, r.Pods, r.Ready, r.Cores, r.Load, framework.LoadAverage(t), time.Since(r.start).Round(time.Second))
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "WAY\tDOWN\tMOST\tIN ALL\tVIOLATIONS\tDELETED\tTO MOVE\tSTUCK\tLEFT CLOSED\tTOOK\tAT BEST")
	for _, w := range r.Ways {
		fmt.Fprintf(out, "%s\t%s\t%.1f s\t%.1f s\t%d\t%d\t%d\t%d\t%d\t%.1f s\t%.1f s\n",
			w.Title, w.down(), w.most(), w.sum(), w.Violations, w.Deleted, w.ToMove, len(w.Stuck), len(w.LeftClosed), w.Seconds, w.Least)
	}
	must(t, out.Flush())
}

// down describes how many workloads were down, such as "5: 4 single, 1 other".
func (r *result) down() string {
	var by []string
	for _, class := range []string{single, blocked, other} {
		if n := r.DownBy[class]; n > 0 {
			by = append(by, fmt.Sprintf("%d %s", n, class))
		}
	}
	if len(by) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(r.Down), strings.Join(by, ", "))
}

func (r *result) most() float64 { return slices.Max(append(r.Down, 0)) }

func (r *result) sum() float64 {
	sum := 0.0
	for _, seconds := range r.Down {
		sum += seconds
	}
	return sum
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
