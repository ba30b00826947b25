// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Finding is a problem revealed by a case: a fault that explore injects, or edits that fuzz makes.
// Implementations embed Evidence.
type Finding interface {
	// Case is the ID of the case that revealed the problem.
	Case() string
	// Title describes the problem in a line, and Where describes the case in a line. Details lists
	// all violations.
	Title() string
	Where() string
	Details() []string
	// Describe writes the details for a terminal, below the title.
	Describe(w io.Writer)
	// Confirmed reports whether the finding is certain, has been reproduced, or is similar to a
	// confirmed finding.
	Confirmed() bool
	// Kind is a key that groups findings: it is equal for findings that probably have the same
	// cause.
	Kind() string
	// Rank is the finding's sort key. Findings with a lower rank are easier to understand and come
	// first in reports.
	Rank() []int

	evidence() *Evidence
}

// Evidence is embedded in all findings. It records the run and everything needed for a replay.
type Evidence struct {
	// Command is the operator's command line. Directory is the working directory of the run; the
	// finding's paths are relative to this directory.
	Command   []string `json:"command"`
	Directory string   `json:"directory,omitempty"`
	// Flags holds the values of the flags that determine which runs count as findings, such as the
	// time limits. A replay uses the same values by default.
	Flags Flags `json:"flags,omitzero"`
	// Repeated is the number of replays, out of Tries, that reproduced the finding. A finding is
	// not replayed if a single run proves it, or if no time is left.
	Repeated int `json:"repeated"`
	Tries    int `json:"tries"`
	// Second describes the result of a replay that did not reproduce the finding. It is empty if
	// there is no such replay.
	Second string `json:"second,omitempty"`
	// Like is the case ID of a confirmed finding that probably has the same cause. If this field is
	// set, the finding is not replayed.
	Like string `json:"like,omitempty"`
	// Timeline lists the events of the run. Output lists the operator's last lines of output.
	Timeline []Moment `json:"timeline,omitempty"`
	Output   []string `json:"output,omitempty"`

	// dir is the directory that the finding was read from, if any.
	dir string
}

func (e *Evidence) evidence() *Evidence { return e }

// CommandOf returns the command line of the operator in which a finding was made.
func CommandOf(f Finding) []string { return f.evidence().Command }

// Flags holds the values of command-line flags that determine which runs count as findings. A
// replay uses the same values by default. A zero value means that the value is not known.
type Flags struct {
	Quiet     metav1.Duration `json:"quiet,omitzero"`
	Settle    metav1.Duration `json:"settle,omitzero"`
	Patience  metav1.Duration `json:"patience,omitzero"`
	Hold      metav1.Duration `json:"hold,omitzero"`
	FailOnLog string          `json:"failOnLog,omitempty"`
}

// mostOutput is the maximum number of output lines stored in a finding.
const mostOutput = 40

// NewEvidence returns the evidence of a run whose working directory is the current directory.
func NewEvidence(command []string, timeline []Moment, output []string) Evidence {
	// Ignore the error: Directory only improves an error message of replays.
	directory, _ := os.Getwd()
	return Evidence{Command: command, Directory: directory, Timeline: timeline, Output: output[max(0, len(output)-mostOutput):]}
}

// Moment is a timeline entry: an event of the run, with its time in seconds.
type Moment struct {
	Seconds float64 `json:"seconds"`
	// Lane names the actor that caused the event: Kit, Operator or Cluster.
	Lane string `json:"lane"`
	Text string `json:"text"`
}

// Values of Moment.Lane, one for each actor in a run. Kit is the sandbox itself.
const (
	Kit      = "kit"
	Operator = "operator"
	Cluster  = "cluster"
)

// Prefixes of Moment.Text that mark an important event (see Moment.Matters).
const (
	Broken = "BROKEN: "
	Fault  = "FAULT: "
	Edit   = "EDIT: "
)

// String formats the timeline entry as a line with its time, lane and text.
func (m Moment) String() string { return fmt.Sprintf("%8.2f  %-8s  %s", m.Seconds, m.Lane, m.Text) }

// Matters reports whether the timeline entry is a violation, a fault or an edit.
func (m Moment) Matters() bool {
	return strings.HasPrefix(m.Text, Broken) || strings.HasPrefix(m.Text, Fault) || strings.HasPrefix(m.Text, Edit)
}

// nearest shortens a timeline to `most` entries. If the timeline contains a violation, it returns
// the entries around the first violation. If it contains a fault but no violation, `moments` holds
// the entries around the first fault, and `last` holds the final entries. Otherwise, it returns the
// final entries as `moments`.
func nearest(all []Moment, most int) (moments, last []Moment) {
	first := func(what string) int {
		return slices.IndexFunc(all, func(m Moment) bool { return strings.HasPrefix(m.Text, what) })
	}
	around := func(at, many int) []Moment {
		from := max(0, min(at-many/4, len(all)-many))
		return all[from : from+many]
	}
	broken, fault := first(Broken), first(Fault)
	switch {
	case len(all) <= most:
		return all, nil
	case broken >= 0:
		return around(broken, most), nil
	case fault >= 0 && fault-most/8+most < len(all):
		return around(fault, most/2), all[len(all)-most/2:]
	}
	return all[len(all)-most:], nil
}

// File returns the name of the file that stores a finding.
func File(f Finding) string { return "finding-" + f.Case() + ".yaml" }

func save(dir string, f Finding) error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, File(f)), text, 0o600)
}

// Place returns the command line for a replay: `other` if it is not empty, and the recorded command
// line otherwise. It returns an error if a file in `files`, or a recorded program that is given by
// a path, does not exist. Relative paths are resolved in the current working directory.
func (e *Evidence) Place(other, files []string) (command []string, err error) {
	if command = other; len(command) == 0 {
		command = e.Command
		if strings.ContainsRune(command[0], filepath.Separator) {
			files = append([]string{command[0]}, files...)
		}
	}
	for _, file := range files {
		_, err := os.Stat(file)
		switch {
		case errors.Is(err, os.ErrNotExist) && !filepath.IsAbs(file):
			return nil, fmt.Errorf("it needs %s, which is not in the working directory: play it again in %s, where it was found, or in one like that", file, e.Directory)
		case err != nil:
			return nil, err
		}
	}
	return command, nil
}
