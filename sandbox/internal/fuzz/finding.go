// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Finding is an edit, or a sequence of them, after which something is wrong. As a file it
// can be replayed.
type Finding struct {
	results.Evidence `json:",inline"`

	Install []string `json:"install,omitempty"`
	Nodes   int      `json:"nodes"`
	Others  string   `json:"others,omitempty"`
	Ignore  []string `json:"ignore,omitempty"`
	// Object is the sample.
	Object  object       `json:"object"`
	Edits   []edits.Edit `json:"edits"`
	Outcome outcome      `json:"outcome"`
	Problem Problem      `json:"problem"`
}

// object is one whose whole numbers stay whole when it is read.
type object map[string]any

// UnmarshalJSON implements [json.Unmarshaler].
func (o *object) UnmarshalJSON(text []byte) error {
	return utiljson.Unmarshal(text, (*map[string]any)(o))
}

var _ json.Unmarshaler = (*object)(nil)

func (f *Fuzzer) newFinding(all []edits.Edit, came outcome, problem *Problem, w *world) *Finding {
	workload := f.Explorer.Workload
	install := workload.Install
	if f.Others != "" {
		install = install[:len(install)-1] // The last one is made of Others.
	}
	return &Finding{
		Evidence: results.NewEvidence(f.Explorer.Command, w.session.Timeline(), w.session.Output(20)),
		Install:  install, Nodes: *workload.Nodes, Others: f.Others, Ignore: f.Ignore, Object: f.Sample,
		Edits: all, Outcome: came, Problem: *problem,
	}
}

// Case implements [results.Finding].
func (f *Finding) Case() string { return id(f.Edits...) }

// Confirmed implements [results.Finding].
func (f *Finding) Confirmed() bool { return f.Repeated > 0 || f.Problem.certain() }

// Title implements [results.Finding].
func (f *Finding) Title() string { return f.Problem.summary() }

// Where implements [results.Finding]: it says which edits it takes.
func (f *Finding) Where() string { return name(f.Edits) }

// Details implements [results.Finding].
func (f *Finding) Details() []string { return f.Problem.Lines }

// oracles are all of them, those that tell most first.
var oracles = []explore.Oracle{explore.Failed, explore.Broken, Changed, NotHealed, NotUndone, OtherThanFresh, explore.NotReached, explore.NotAtRest}

// Rank implements [results.Finding]: the fewest edits come first.
func (f *Finding) Rank() []int {
	return []int{slices.Index(oracles, f.Problem.Oracle), len(f.Edits)}
}

// Kind implements [results.Finding].
func (f *Finding) Kind() string {
	text := string(f.Problem.Oracle)
	for _, d := range f.Problem.Lines[:min(1, len(f.Problem.Lines))] {
		what, _, _ := strings.Cut(d, " is ")
		text += " " + explore.AnyIndex(what)
	}
	if f.Problem.Oracle == explore.NotAtRest {
		return string(f.Problem.Oracle) + " " + f.Edits[0].Field
	}
	return text
}

// name names a sequence of edits.
func name(all []edits.Edit) string {
	names := make([]string, 0, len(all))
	for _, e := range all {
		names = append(names, e.String())
	}
	return strings.Join(names, "; at once ")
}

// id identifies a sequence of edits.
func id(all ...edits.Edit) string {
	sum := sha256.Sum256([]byte(name(all)))
	return fmt.Sprintf("%x", sum[:4])
}

// IsFinding reports whether a file is a finding of this package, and not of another.
func IsFinding(file string) bool {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return false
	}
	var fields map[string]any
	return yaml.Unmarshal(text, &fields) == nil && fields["edits"] != nil
}

// ReadFinding reads a file that was saved.
func ReadFinding(file string) (*Finding, error) { return tool.ReadFinding(file) }

func parseFinding(text []byte) (*Finding, error) {
	f := &Finding{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	switch {
	case len(f.Command) == 0 || len(f.Object) == 0 || len(f.Edits) == 0:
		return nil, errors.New("it has no command, no object or no edits")
	case f.Nodes < 0:
		return nil, fmt.Errorf("nodes: %d: there cannot be fewer than 0", f.Nodes)
	}
	return f, nil
}

func oneLine(text string) string { return explore.OneLine(text) }
