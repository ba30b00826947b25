// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Finding is a problem, together with the edit, the edit with a fault, or the sequence of edits
// that caused it. It can be saved to a file and replayed.
type Finding struct {
	results.Evidence `json:",inline"`
	// After is the time from the start of the run until the finding, in seconds.
	After float64 `json:"after,omitempty"`

	Install []string `json:"install,omitempty"`
	Nodes   int      `json:"nodes"`
	// Programs, Applications, HostNetwork, ServiceAccount and WithoutControllers are the fields of
	// [workload.Workload] with the same names.
	Programs           []string               `json:"programs,omitempty"`
	Applications       []workload.Application `json:"applications,omitempty"`
	HostNetwork        bool                   `json:"hostNetwork,omitempty"`
	ServiceAccount     string                 `json:"serviceAccount,omitempty"`
	WithoutControllers []string               `json:"withoutControllers,omitempty"`
	Others             string                 `json:"others,omitempty"`
	Ignore             []string               `json:"ignore,omitempty"`
	// Busy is set if the trial also applied the edit while the operator was busy with a new object
	// (flag --busy).
	Busy bool `json:"busy,omitempty"`
	// Ready is a condition that the unedited sample met (flag --ready).
	Ready string `json:"ready,omitempty"`
	// Object is the sample (the custom resource to edit), before the edits.
	Object object       `json:"object"`
	Edits  []edits.Edit `json:"edits"`
	// Fault is injected while the operator reacts to the edit. It is nil if the problem also occurs
	// without a fault.
	Fault   *faults.Fault `json:"fault,omitempty"`
	Outcome outcome       `json:"outcome"`
	Problem Problem       `json:"problem"`
}

// object is a decoded JSON object whose integers are int64 instead of float64.
type object map[string]any

// UnmarshalJSON implements [json.Unmarshaler].
func (o *object) UnmarshalJSON(text []byte) error {
	return utiljson.Unmarshal(text, (*map[string]any)(o))
}

var _ json.Unmarshaler = (*object)(nil)

func (f *Fuzzer) newFinding(t trial, came outcome, problem *Problem, w *world) *Finding {
	of := f.Testbeds.Workload
	install := of.Install
	if f.Others != "" {
		install = install[:len(install)-1] // The last file contains the generated manifest Others.
	}
	problem = problem.because(judge.Invalid(w.record.requests(), w.record.locks()))
	found := &Finding{
		Evidence: results.NewEvidence(f.Testbeds.Command, w.record.timeline(), w.testbed.Operator.Output.Tail(20)),
		Install:  install, Nodes: *of.Nodes, Programs: of.Programs, Applications: of.Applications, HostNetwork: of.HostNetwork, ServiceAccount: of.ServiceAccount,
		WithoutControllers: of.WithoutControllers, Others: f.Others, Ignore: f.Ignore, Busy: f.Busy, Ready: f.Ready, Object: f.Sample,
		Edits: t.edits, Fault: t.fault, Outcome: came, Problem: *problem,
	}
	found.Flags = f.Testbeds.Flags(f.Limits, 0)
	return found
}

// Workload returns the workload of a replay: the initial cluster state and the operator's identity.
func (f *Finding) Workload() *workload.Workload {
	return &workload.Workload{
		Nodes: &f.Nodes, Install: f.Install, Programs: f.Programs, Applications: f.Applications,
		HostNetwork: f.HostNetwork, ServiceAccount: f.ServiceAccount, WithoutControllers: f.WithoutControllers,
	}
}

// Case implements [results.Finding].
func (f *Finding) Case() string { return f.trial().id() }

// trial returns the finding's edits and fault as a trial.
func (f *Finding) trial() trial { return trial{edits: f.Edits, fault: f.Fault} }

// Confirmed implements [results.Finding].
func (f *Finding) Confirmed() bool { return f.Repeated > 0 || f.Like != "" || f.Problem.certain() }

// Title implements [results.Finding].
func (f *Finding) Title() string { return f.Problem.summary() }

// Where implements [results.Finding] and describes the edits.
func (f *Finding) Where() string { return f.trial().name() }

// What returns the name of the kind of trial, such as "sequence of edits".
func (f *Finding) What() string {
	switch {
	case f.Fault != nil:
		return "edit with this fault"
	case len(f.Edits) > 1:
		return "sequence of edits"
	}
	return "edit"
}

// Details implements [results.Finding].
func (f *Finding) Details() []string { return f.Problem.Lines }

// oracles lists the kinds of problems, the most useful for readers first.
var oracles = []judge.Oracle{judge.Failed, judge.Broken, Changed, NotHealed, NotUndone, OtherThanFresh, judge.OtherState, judge.NotReached, judge.NotAtRest}

// Rank implements [results.Finding]. Findings are sorted by kind of problem, then by the number of
// edits. Findings without a fault come before findings with a fault.
func (f *Finding) Rank() []int {
	faults := 0
	if f.Fault != nil {
		faults = 1
	}
	return []int{slices.Index(oracles, f.Problem.Oracle), len(f.Edits), faults}
}

// Kind implements [results.Finding].
func (f *Finding) Kind() string {
	text := string(f.Problem.Oracle)
	if f.Fault != nil {
		text += " with a fault"
	}
	if f.Problem.Oracle == judge.NotAtRest {
		return text + " " + f.Edits[0].Field
	}
	for _, line := range f.Problem.Lines[:min(1, len(f.Problem.Lines))] {
		text += " " + subject(line)
	}
	return text
}

// subject returns the object and the field that a line of a problem is about, without their values.
func subject(line string) string {
	what, _, _ := strings.Cut(line, " is ")
	return state.AnyIndex(what)
}

// Same reports whether a second run shows the same problem, even if only one of the two runs had a
// fault. A single common line is enough, since other lines may come by chance.
func (f *Finding) Same(again *Finding) bool {
	switch {
	case f.Problem.Oracle != again.Problem.Oracle:
		return false
	case f.Problem.Oracle == judge.NotAtRest:
		return f.Edits[0].Field == again.Edits[0].Field
	}
	return len(f.Problem.Lines) == 0 && len(again.Problem.Lines) == 0 || len(f.Problem.common(&again.Problem)) > 0
}

// common returns the lines of the problem with the same subject as a line of another problem.
func (p *Problem) common(other *Problem) []string {
	var lines []string
	for _, line := range p.Lines {
		if slices.ContainsFunc(other.Lines, func(l string) bool { return subject(l) == subject(line) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

// secondTime compares the finding with `other`, the finding of a second run, and records whether
// both show the same problem. It removes the lines that only one of the runs shows. It returns
// `other` instead of `f` if the problem of `other` is certain after one run, such as a panic. It
// also returns `other` if `other` shows the same problem without a fault.
func (f *Finding) secondTime(other *Finding) *Finding {
	same := f.Same(other)
	found, confirms := f, other
	if other.Problem.certain() || same && other.Fault == nil && f.Fault != nil {
		found, confirms = other, f
	}
	found.Tries = 1
	if same {
		found.Repeated = 1
		if found.Problem.Oracle != judge.NotAtRest && !found.Problem.certain() {
			found.Problem.Lines = found.Problem.common(&confirms.Problem)
		}
	} else if found == f {
		found.Second = "it was " + other.Problem.summary()
	}
	return found
}

// IsFinding reports whether a file contains a finding of fuzz rather than of explore.
func IsFinding(file string) bool {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return false
	}
	var fields map[string]any
	return yaml.Unmarshal(text, &fields) == nil && fields["edits"] != nil
}

func parseFinding(text []byte) (*Finding, error) {
	f := &Finding{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return nil, errors.New(words.OneLine(err.Error()))
	}
	switch {
	case len(f.Command) == 0 || len(f.Object) == 0 || len(f.Edits) == 0:
		return nil, errors.New("it has no command, no object or no edits")
	case f.Nodes < 0:
		return nil, fmt.Errorf("nodes: %d: there cannot be fewer than 0", f.Nodes)
	case f.Fault != nil && len(f.Edits) > 1:
		return nil, errors.New("it has a fault and more than one edit")
	}
	if f.Fault != nil {
		if err := f.Fault.CheckWrite(); err != nil {
			return nil, err
		}
	}
	return f, nil
}
