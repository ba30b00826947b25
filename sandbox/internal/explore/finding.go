// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Finding is a fault that the operator does not survive. As a file it can be replayed.
type Finding struct {
	// ID is that of the fault that was played; its steps may have other numbers since.
	ID       string    `json:"id,omitempty"`
	Command  []string  `json:"command"`
	Workload *Workload `json:"workload"`
	// Fault is nil if it needs none.
	Fault    *Fault    `json:"fault,omitempty"`
	Problems []Problem `json:"problems"`
	// Repeated is how often it was found again, and Tries how often that was tried. One
	// that is certain from what has happened is not tried again.
	Repeated int `json:"repeated"`
	Tries    int `json:"tries"`
	// Like is the ID of a finding that shows probably the same mistake and is certain. Then
	// it was not tried again either.
	Like string `json:"like,omitempty"`
	// After is how many seconds after the beginning it was found.
	After float64 `json:"after,omitempty"`
	// Shrunk: each step of the workload is needed. Shrinking says what came of leaving
	// steps out.
	Shrunk    bool   `json:"shrunk,omitempty"`
	Shrinking string `json:"shrinking,omitempty"`
	// Timeline is what happened around the fault.
	Timeline []Moment `json:"timeline,omitempty"`
	// Output is how the operator's output ended.
	Output []string `json:"output,omitempty"`
}

// Moment is a line of a timeline.
type Moment struct {
	// Seconds are since the operator was started.
	Seconds float64 `json:"seconds"`
	// Lane is who did it: kit, operator or cluster.
	Lane string `json:"lane"`
	Text string `json:"text"`
}

// Lanes of a timeline.
const (
	laneKit      = "kit"
	laneOperator = "operator"
	laneCluster  = "cluster"
)

// confirmed reports whether it is certain, or was found more than once.
func (f *Finding) confirmed() bool {
	return f.Repeated > 0 || f.Like != "" || slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.certain() })
}

// title says what is wrong, in a line.
func (f *Finding) title() string { return f.Problems[0].summary() }

// where says what the fault was.
func (f *Finding) where() string {
	if f.Fault == nil {
		return "without any fault"
	}
	return f.Fault.describe(f.Workload)
}

var numbers = regexp.MustCompile(`\d+`)

// kind identifies findings that are probably of the same mistake: they say the same, other
// than numbers and what a field is instead of what it should be.
func (f *Finding) kind() string {
	p := f.Problems[0]
	text := string(p.Oracle)
	if len(p.Lines) > 0 {
		object, what, _ := strings.Cut(p.Lines[0], ": ")
		path, _, _ := strings.Cut(what, " is ")
		text += " " + object + " " + path
	}
	return numbers.ReplaceAllString(text, "N")
}

// newFinding describes the problems of a run. What comes after the step at which they were
// noticed does not matter, and is left out of the workload.
func (e *Explorer) newFinding(f *Fault, o *Outcome, b *Baseline) *Finding {
	slices.SortStableFunc(o.Problems, func(a, b Problem) int { return cmp.Compare(rank(a.Oracle), rank(b.Oracle)) })
	last := 0
	for _, p := range o.Problems {
		last = max(last, p.Step)
	}
	if f != nil {
		last = max(last, f.Step, f.Until)
	}
	w := *e.Workload
	w.Steps = w.Steps[:min(max(last, 1), len(w.Steps))]
	found := &Finding{Command: e.Command, Workload: &w, Fault: f, Problems: o.Problems, Timeline: timeline(o, b), Output: o.Output[max(0, len(o.Output)-20):]}
	found.ID = found.id()
	return found
}

// id is that of its fault.
func (f *Finding) id() string {
	if f.Fault == nil {
		return "undisturbed"
	}
	return f.Fault.id()
}

// file is the name of the file that replays it.
func (f *Finding) file() string { return "finding-" + f.ID + ".yaml" }

// rank orders oracles by how much they tell.
func rank(o Oracle) int {
	return slices.Index([]Oracle{Failed, Broken, OtherState, NotReached, OtherCounts, NotAtRest}, o)
}

// mostMoments bounds a timeline.
const mostMoments = 60

// timeline merges what the kit, the operator and the rest of the cluster did.
func timeline(o *Outcome, b *Baseline) []Moment {
	var all []Moment
	var injected time.Time
	for _, p := range o.Problems {
		if injected.IsZero() {
			injected = p.At
		}
	}
	add := func(at time.Time, lane, text string) {
		all = append(all, Moment{Seconds: at.Sub(o.Began).Seconds(), Lane: lane, Text: text})
	}
	for _, p := range o.Problems {
		if !p.At.IsZero() {
			add(p.At, laneKit, "BROKEN: "+p.Lines[0])
		}
	}
	for _, n := range o.Notes {
		if strings.HasPrefix(n.text, "FAULT") && injected.IsZero() {
			injected = n.time
		}
		add(n.time, laneKit, n.text)
	}
	var locks map[string]bool
	if b != nil {
		locks = b.Locks
	}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.writes(locks) {
			add(r.Time, laneOperator, r.String())
		}
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		if v.Initial || v.heartbeat() || leftOut(v, locks) {
			continue
		}
		switch {
		case v.Type != "MODIFIED":
			add(v.Time, laneCluster, strings.ToLower(string(v.Type))+" "+v.key())
		case v.Object.GetDeletionTimestamp() != nil && v.Old != nil && v.Old.GetDeletionTimestamp() == nil:
			add(v.Time, laneCluster, "deletion begins of "+v.key())
		}
	}
	slices.SortStableFunc(all, func(a, b Moment) int { return cmp.Compare(a.Seconds, b.Seconds) })
	if len(all) <= mostMoments {
		return all
	}
	// What is near the fault tells most, and the kit's own lines always do.
	middle := injected.Sub(o.Began).Seconds()
	if injected.IsZero() {
		middle = all[len(all)-1].Seconds
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	distance := func(i int) float64 {
		if all[i].Lane == laneKit {
			return -1
		}
		d := all[i].Seconds - middle
		if d < 0 {
			d *= -2 // What comes after it tells more.
		}
		return d
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(distance(i), distance(j)) })
	order = order[:mostMoments]
	slices.Sort(order)
	near := make([]Moment, 0, mostMoments)
	for _, i := range order {
		near = append(near, all[i])
	}
	return near
}

// save writes the file that replays it, and returns its name.
func (f *Finding) save(dir string) (string, error) {
	text, err := yaml.Marshal(f)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, f.file())
	return file, os.WriteFile(file, text, 0o600)
}

// ReadFinding reads a file that was saved.
func ReadFinding(file string) (*Finding, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	f := &Finding{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return nil, fmt.Errorf("%s is not a finding of sandbox explore: %w", file, err)
	}
	if f.Workload == nil || len(f.Command) == 0 {
		return nil, fmt.Errorf("%s is not a finding of sandbox explore: it has no command or no workload", file)
	}
	if err := f.Workload.compile(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if f.Fault != nil {
		if _, known := kinds[f.Fault.Kind]; !known {
			return nil, fmt.Errorf("%s: there is no fault %q", file, f.Fault.Kind)
		}
		f.Fault.Until = max(f.Fault.Until, f.Fault.Step)
	}
	if f.ID == "" {
		f.ID = f.id()
	}
	return f, nil
}
