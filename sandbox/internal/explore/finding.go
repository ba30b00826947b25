// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Finding is a fault that the operator does not survive. As a file it can be replayed.
type Finding struct {
	results.Evidence `json:",inline"`
	// ID is that of the fault that was played; its steps may have other numbers since.
	ID       string    `json:"id,omitempty"`
	Workload *Workload `json:"workload"`
	// Fault is nil if it needs none.
	Fault    *Fault    `json:"fault,omitempty"`
	Problems []Problem `json:"problems"`
	// Like is the ID of a finding that shows probably the same mistake and is certain. Then
	// it was not tried again either.
	Like string `json:"like,omitempty"`
	// After is how many seconds after the beginning it was found.
	After float64 `json:"after,omitempty"`
	// Shrunk: each step of the workload is needed. Shrinking says what came of leaving
	// steps out.
	Shrunk    bool   `json:"shrunk,omitempty"`
	Shrinking string `json:"shrinking,omitempty"`
}

// Confirmed implements [results.Finding].
func (f *Finding) Confirmed() bool {
	return f.Repeated > 0 || f.Like != "" || slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.certain() })
}

// Case implements [results.Finding].
func (f *Finding) Case() string { return f.ID }

// Rank implements [results.Finding]: the shortest workload comes first.
func (f *Finding) Rank() []int { return []int{rank(f.Problems[0].Oracle), len(f.Workload.Steps)} }

// Details implements [results.Finding].
func (f *Finding) Details() []string {
	var lines []string
	for _, p := range f.Problems {
		lines = append(append(lines, string(p.Oracle)+":"), p.Lines...)
	}
	return lines
}

// Possible says when such a fault happens.
func (f *Finding) Possible() string {
	if f.Fault == nil {
		return ""
	}
	return f.Fault.Possible()
}

// Title implements [results.Finding].
func (f *Finding) Title() string { return f.Problems[0].summary() }

// Where implements [results.Finding]: it says what the fault was.
func (f *Finding) Where() string {
	if f.Fault == nil {
		return "without any fault"
	}
	return f.Fault.describe(f.Workload)
}

var numbers = regexp.MustCompile(`\d+`)

// Kind implements [results.Finding]: findings of one kind say the same, whatever the fault is.
func (f *Finding) Kind() string { return f.Problems[0].shows()[0] }

// shows is what a problem says, without numbers and what a field is instead of what it should be:
// what it is about in general, and each line of those that are about objects of their own.
func (p *Problem) shows() []string {
	lines := p.Lines[:min(1, len(p.Lines))]
	if p.Oracle == OtherState || p.Oracle == OtherCounts {
		lines = p.Lines
	}
	var all []string
	for _, line := range lines {
		object, what, _ := strings.Cut(line, ": ")
		path, _, _ := strings.Cut(what, " is ")
		path, _, _ = strings.Cut(path, lastWritten)
		all = append(all, numbers.ReplaceAllString(string(p.Oracle)+" "+object+" "+path, "N"))
	}
	if len(all) == 0 {
		return []string{string(p.Oracle)}
	}
	return all
}

// different says what was different when a fault was played again, empty if one of the problems
// is one of the finding.
func (f *Finding) different(again *Outcome) string {
	var before []string
	for i := range f.Problems {
		before = append(before, f.Problems[i].shows()...)
	}
	unreached := ""
	if !again.Reached {
		unreached = "the fault was not reached"
	}
	if len(again.Problems) == 0 {
		return cmp.Or(unreached, "all was well")
	}
	if unreached != "" {
		return unreached + ", and yet " + again.Problems[0].summary()
	}
	for i := range again.Problems {
		if slices.ContainsFunc(again.Problems[i].shows(), func(show string) bool { return slices.Contains(before, show) }) {
			return ""
		}
	}
	return "it was " + again.Problems[0].summary()
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
	found := &Finding{Evidence: results.NewEvidence(e.Command, timeline(o, b), o.Output), Workload: &w, Fault: f, Problems: o.Problems}
	found.ID = found.id()
	return found
}

// undisturbed is the ID of what is found without a fault.
const undisturbed = "undisturbed"

// id is that of its fault.
func (f *Finding) id() string {
	if f.Fault == nil {
		return undisturbed
	}
	return f.Fault.id()
}

// rank orders oracles by how much they tell.
func rank(o Oracle) int {
	return slices.Index([]Oracle{Failed, Broken, OtherEnds, OtherState, NotReached, OtherCounts, NotAtRest}, o)
}

// mostMoments bounds a timeline.
const mostMoments = 60

// timeline merges what the kit, the operator and the rest of the cluster did.
func timeline(o *Outcome, b *Baseline) []results.Moment {
	var all []results.Moment
	var injected time.Time
	for _, p := range o.Problems {
		if injected.IsZero() {
			injected = p.At
		}
	}
	add := func(at time.Time, lane, text string) {
		all = append(all, results.Moment{Seconds: at.Sub(o.Began).Seconds(), Lane: lane, Text: text})
	}
	for _, p := range o.Problems {
		if !p.At.IsZero() {
			add(p.At, results.Kit, results.Broken+p.Lines[0])
		}
	}
	for _, n := range o.Notes {
		if strings.HasPrefix(n.text, results.Fault) && injected.IsZero() {
			injected = n.time
		}
		add(n.time, results.Kit, n.text)
	}
	var locks map[string]bool
	if b != nil {
		locks = b.Locks
	}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.writes(locks) {
			add(r.Time, results.Operator, r.String())
		}
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		if v.Initial || v.heartbeat() || leftOut(v, locks) {
			continue
		}
		switch {
		case v.Type != "MODIFIED":
			add(v.Time, results.Cluster, strings.ToLower(string(v.Type))+" "+v.key())
		case v.Object.GetDeletionTimestamp() != nil && v.Old != nil && v.Old.GetDeletionTimestamp() == nil:
			add(v.Time, results.Cluster, "deletion begins of "+v.key())
		}
	}
	slices.SortStableFunc(all, func(a, b results.Moment) int { return cmp.Compare(a.Seconds, b.Seconds) })
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
		if all[i].Lane == results.Kit {
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
	near := make([]results.Moment, 0, mostMoments)
	for _, i := range order {
		near = append(near, all[i])
	}
	return near
}

// ReadFinding reads a file that was saved.
func ReadFinding(file string) (*Finding, error) { return tool.ReadFinding(file) }

func parseFinding(text []byte) (*Finding, error) {
	f := &Finding{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	if f.Workload == nil || len(f.Command) == 0 || len(f.Problems) == 0 {
		return nil, errors.New("it has no command, no workload or no problems")
	}
	if err := f.Workload.compile(); err != nil {
		return nil, err
	}
	if f.Fault != nil {
		if !f.Fault.Kind.Known() {
			return nil, fmt.Errorf("there is no fault %q", f.Fault.Kind)
		}
		f.Fault.Until = max(f.Fault.Until, f.Fault.Step)
	}
	if f.ID == "" {
		f.ID = f.id()
	}
	return f, nil
}
