// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// mostMoments is the maximum number of lines in a timeline.
const mostMoments = 60

// Timeline merges explore's own actions, violated invariants, the operator's writes and requests to
// applications, and creations and deletions of objects, sorted by time. A long timeline is reduced to
// the lines nearest to the first violation or, if there is none, to the fault. `locks` is the set of
// keys of objects used for leader election, which are left out.
func Timeline(o *Outcome, locks map[string]bool) []results.Moment {
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
		if strings.HasPrefix(n.Text, results.Fault) && injected.IsZero() {
			injected = n.Time
		}
		add(n.Time, results.Kit, n.Text)
	}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.Writes(locks) || r.ToApplication() {
			add(r.Time, results.Operator, r.String())
		}
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		if v.Initial || v.Heartbeat() || observe.LeftOut(v, locks) {
			continue
		}
		switch {
		case v.Type != "MODIFIED":
			add(v.Time, results.Cluster, strings.ToLower(string(v.Type))+" "+v.Key())
		case v.Object.GetDeletionTimestamp() != nil && v.Old != nil && v.Old.GetDeletionTimestamp() == nil:
			add(v.Time, results.Cluster, "deletion begins of "+v.Key())
		}
	}
	slices.SortStableFunc(all, func(a, b results.Moment) int { return cmp.Compare(a.Seconds, b.Seconds) })
	if len(all) <= mostMoments {
		return all
	}
	// If the timeline is too long, keep explore's own actions, and the lines nearest to the first
	// violation or the fault.
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
			d *= -2 // Lines after the fault are more useful than lines before it.
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
