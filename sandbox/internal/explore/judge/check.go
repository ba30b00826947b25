// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/inject"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Oracle is the name of the check that detected a problem.
type Oracle string

// Values of Oracle, the names of the checks as shown in reports.
const (
	// OtherState means that the objects at the end of a step differ from the objects in the
	// baseline.
	OtherState Oracle = "other state"
	// OtherEnds means that the desired state (all fields except for metadata and status) at the end
	// of a step differs between baseline runs.
	OtherEnds Oracle = "different ends"
	// NotReached means that a step failed, for example because the condition that users wait for
	// never became true.
	NotReached Oracle = "not reached"
	// NotAtRest means that the operator keeps writing or reading, or that the cluster does not
	// become quiet.
	NotAtRest Oracle = "not at rest"
	// OtherCounts means that objects were created or deleted more often or less often than in the
	// baseline.
	OtherCounts Oracle = "other counts"
	// Broken means that an object version violates an invariant.
	Broken Oracle = "invariant broken"
	// Failed means that the operator panicked, exited, or logged a line that --fail-on-log matches.
	Failed Oracle = "operator failed"
)

// Problem is incorrect behavior of an operator, detected in a run.
type Problem struct {
	Oracle Oracle `json:"oracle"`
	// Step is the number of the step in which the problem was detected.
	Step  int      `json:"step"`
	Lines []string `json:"lines"`
	// At is the time at which the problem occurred, or zero if the time is unknown.
	At time.Time `json:"-"`
}

// Certain reports whether a single run proves the problem. An exit is not certain, because the
// machine may have run out of resources.
func (p *Problem) Certain() bool {
	return p.Oracle == Broken || p.Oracle == OtherEnds || p.Oracle == Failed && !strings.HasPrefix(p.Lines[0], EndedByItself)
}

// EndedByItself is the prefix of the line that describes an exit of the operator in a problem.
const EndedByItself = "the operator ended by itself: "

// Judge compares a run with the baseline, and checks invariants.
type Judge struct {
	Workload *workload.Workload
	// Base is the baseline that the run is compared with, and Fault is the injected fault. Both are
	// nil in a baseline run.
	Base     *baseline.Baseline
	Fault    *faults.Fault
	Recorder *observe.Recorder
	Rival    *inject.Rival

	latest observe.LatestState
}

// Differences compares the current objects with the objects in the baseline at the end of a step.
func (j *Judge) Differences(base *baseline.BaseStep) []state.Difference {
	now := j.latest.Of(j.Recorder, func(objects []observe.Version) state.State { return j.Base.Names.State(objects, j.Base.Locks) })
	want, got := comparableStates(j.Fault, base.State, now)
	if j.Fault.Effects().OtherClientWrites && handedOn(j.Recorder.Objects(), j.Rival.Touched) {
		want, got = withoutRevisions(want), withoutRevisions(got)
	}
	return state.Compare(want, got, base.Mask, state.Rules{})
}

// After adds to `o` the problems that only a complete run can reveal. They are violated invariants,
// failures and exits of the operator, unexpected numbers of objects, and hot loops (continuous
// requests). `failures` lists failures in the operator's output, and `ends` lists its exit
// statuses.
func (j *Judge) After(o *Outcome, failures, ends []string) {
	last := max(len(o.Steps)-1, 0)
	for _, p := range brokenInvariants(j.Workload.Invariants, o.Versions, slices.Collect(maps.Keys(j.Recorder.Watched))...) {
		if j.Base != nil && j.Base.Broken[observe.General(p.Lines[0])] {
			continue
		}
		p.Step = o.StepAt(p.At, len(j.Workload.Steps))
		o.Problems = append(o.Problems, p)
	}
	if len(failures) > 0 {
		o.Problems = append(o.Problems, Problem{Oracle: Failed, Step: last, Lines: failures})
	}
	if len(ends) > 0 && !j.Fault.Effects().BreaksConnections && j.Fault != nil {
		o.Problems = append(o.Problems, Problem{Oracle: Failed, Step: last, Lines: []string{EndedByItself + ends[0]}})
	}
	if j.Base == nil || len(o.Problems) > 0 || len(o.Steps) < len(j.Base.Steps) {
		return
	}
	counts := baseline.CountOf(j.Base.Names, o.Versions, j.Base.Locks, j.Base.MakesPods, j.Fault.Effects().HidesStates)
	tolerance := baseline.Tolerance{
		Fewer:     j.Fault.Effects().HidesStates,
		Templates: j.Fault.Effects().OtherClientWrites && handedOn(j.Recorder.Objects(), j.Rival.Touched),
	}
	if lines := j.Base.OtherCounts(counts, tolerance); len(lines) > 0 {
		o.Problems = append(o.Problems, Problem{Oracle: OtherCounts, Step: last, Lines: lines})
	}
	if lines := observe.RefusedFast(knowable(j.Fault, o.Requests, o.Versions), j.Base.Locks); len(lines) > 0 {
		o.Problems = append(o.Problems, Problem{Oracle: NotAtRest, Step: last, Lines: lines})
	}
	if o.Rest != nil {
		o.Problems = append(o.Problems, o.Rest.Busy(last)...)
	}
}

// knowable returns the requests, except for requests for deleted objects if the fault may have
// hidden the deletions from the operator. The operator then rightly repeats such requests at each
// event of an object that depends on a deleted object.
func knowable(f *faults.Fault, requests []observe.Request, versions []observe.Version) []observe.Request {
	if !f.Effects().HidesStates {
		return requests
	}
	// seen maps each object's key to its creations and deletions, in order.
	seen := map[string][]*observe.Version{}
	for i := range versions {
		if v := &versions[i]; v.Type == watch.Deleted || v.Type == watch.Added {
			seen[v.Key()] = append(seen[v.Key()], v)
		}
	}
	return slices.DeleteFunc(slices.Clone(requests), func(r observe.Request) bool {
		gone := false
		for _, v := range seen[observe.NameKey(r.Resource, r.Namespace, r.Name)] {
			if v.Time.Before(r.Time) {
				gone = v.Type == watch.Deleted // An object with the same key may be created again later.
			}
		}
		return gone
	})
}

// Summary describes the problem in a line.
func (p *Problem) Summary() string { return Summary(p.Oracle, p.Lines) }

// Summary describes a problem in a line: the oracle that detected it, the first of its lines, and
// the number of other lines.
func Summary(o Oracle, lines []string) string {
	text := string(o)
	if len(lines) > 0 {
		text += ": " + words.OneLine(lines[0])
	}
	if len(lines) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(lines)-1)
	}
	return strings.TrimSpace(text)
}

var numbers = regexp.MustCompile(`\b(?:never|once|twice|\d+ times)\b|\d+`)

// restlessChange matches the verb of the most frequent change in a problem of the oracle NotAtRest.
// Findings are compared without it: an operator that creates and deletes an object by turns has one of
// the two as the more frequent by chance.
var restlessChange = regexp.MustCompile(`^(it does not come to rest (?:the operator's )?)\w+ `)

// Shows returns a form of the problem that can be compared between findings: the oracle and the
// affected object or field, without numbers, values and the generated parts of names. For a problem
// that affects several objects, it returns a line for each object.
func (p *Problem) Shows() []string {
	lines := p.Lines[:min(1, len(p.Lines))]
	if p.Oracle == OtherState || p.Oracle == OtherCounts {
		lines = p.Lines
	}
	var all []string
	for _, line := range lines {
		object, what, _ := strings.Cut(line, ": ")
		path, _, _ := strings.Cut(what, " is ")
		path, _, _ = strings.Cut(path, operator.LastWritten)
		text := observe.General(object + " " + path)
		if p.Oracle == NotAtRest {
			text = restlessChange.ReplaceAllString(text, "$1")
		}
		all = append(all, numbers.ReplaceAllString(string(p.Oracle)+" "+text, "N"))
	}
	if len(all) == 0 {
		return []string{string(p.Oracle)}
	}
	return all
}

// Same reports whether two problems have the same oracle and the same first line.
func (p *Problem) Same(other Problem) bool {
	return p.Oracle == other.Oracle && slices.Equal(p.Lines[:min(1, len(p.Lines))], other.Lines[:min(1, len(other.Lines))])
}

// Invalid returns a line for each write whose last attempt the API server rejected as invalid
// (422). It ignores responses injected by a fault. `locks` is the set of keys of objects used for
// leader election, which are ignored.
func Invalid(requests []observe.Request, locks map[string]bool) []string {
	last := map[observe.Call]*observe.Request{}
	var order []observe.Call
	for i := range requests {
		r := &requests[i]
		if !r.Writes(locks) || r.Fault != "" {
			continue
		}
		call := observe.Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
		if last[call] == nil {
			order = append(order, call)
		}
		last[call] = r
	}
	var lines []string
	for _, call := range order {
		if last[call].Upstream == http.StatusUnprocessableEntity {
			lines = append(lines, last[call].String())
		}
	}
	return lines
}

// Rank returns the rank of an oracle. The lower the rank, the more useful the oracle's problems are
// to readers of a report.
func Rank(o Oracle) int {
	return slices.Index([]Oracle{Failed, Broken, OtherEnds, OtherState, NotReached, OtherCounts, NotAtRest}, o)
}
