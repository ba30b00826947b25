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
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
)

// Finding is an edit, or a sequence of them, after which something is wrong. As a file it
// can be replayed.
type Finding struct {
	Command []string `json:"command"`
	Install []string `json:"install,omitempty"`
	Nodes   int      `json:"nodes"`
	Others  string   `json:"others,omitempty"`
	Ignore  []string `json:"ignore,omitempty"`
	// Object is the sample.
	Object  object       `json:"object"`
	Edits   []edits.Edit `json:"edits"`
	Outcome outcome      `json:"outcome"`
	Problem Problem      `json:"problem"`
	// Repeated is how often it was found again, and Tries how often that was tried. One
	// that is certain from what has happened is not tried again.
	Repeated int `json:"repeated"`
	Tries    int `json:"tries"`
	// Timeline is what happened, and Output how the operator's output ended.
	Timeline []explore.Moment `json:"timeline,omitempty"`
	Output   []string         `json:"output,omitempty"`
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
		Command: f.Explorer.Command, Install: install, Nodes: *workload.Nodes, Others: f.Others, Ignore: f.Ignore, Object: f.Sample,
		Edits: all, Outcome: came, Problem: *problem, Timeline: w.session.Timeline(), Output: w.session.Output(20),
	}
}

// confirmed reports whether it is certain, or was found more than once.
func (f *Finding) confirmed() bool { return f.Repeated > 0 || f.Problem.certain() }

// title says what is wrong, in a line.
func (f *Finding) title() string { return f.Problem.summary() }

// where says which edits it takes.
func (f *Finding) where() string { return name(f.Edits) }

// kind identifies findings that are probably of the same mistake.
func (f *Finding) kind() string {
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

// file is the name of the file that replays it.
func (f *Finding) file(dir string) string {
	return filepath.Join(dir, "finding-"+id(f.Edits...)+".yaml")
}

// save writes the file that replays it.
func (f *Finding) save(dir string) error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(f.file(dir), text, 0o600)
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
func ReadFinding(file string) (*Finding, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	f, err := parseFinding(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a finding of sandbox fuzz: %w", file, err)
	}
	return f, nil
}

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
