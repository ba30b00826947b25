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

	"sigs.k8s.io/yaml"
)

// Finding is a detected problem. All findings have Evidence.
type Finding interface {
	// Case is the ID of the case that showed the problem.
	Case() string
	// Title describes the problem in a line, and Where its case in a line; Details has all violations.
	Title() string
	Where() string
	Details() []string
	// Describe writes the details for a terminal, below the title.
	Describe(w io.Writer)
	// Confirmed reports whether the finding is certain, or was reproduced.
	Confirmed() bool
	// Kind is equal for findings that probably have the same cause.
	Kind() string
	// Rank orders findings: the lowest rank is the easiest to understand.
	Rank() []int

	evidence() *Evidence
}

// Evidence is the common part of all findings: how to replay them, and a record of the run.
type Evidence struct {
	// Command is the command line of the operator, and Directory the working directory. Paths in a
	// finding are relative to that directory, or to a copy of it.
	Command   []string `json:"command"`
	Directory string   `json:"directory,omitempty"`
	// Repeated is the number of replays, out of Tries, that showed the finding again. Findings that are
	// certain after a single run, or that there was no time for, are not replayed.
	Repeated int `json:"repeated"`
	Tries    int `json:"tries"`
	// Second describes how a replay without the finding differed.
	Second string `json:"second,omitempty"`
	// Like is the case of a confirmed finding that probably has the same cause. A finding with Like
	// was not played a second time.
	Like string `json:"like,omitempty"`
	// Timeline has the events of the run, and Output the end of the operator's output.
	Timeline []Moment `json:"timeline,omitempty"`
	Output   []string `json:"output,omitempty"`

	// dir is the directory of its file, if it was read from a file.
	dir string
}

func (e *Evidence) evidence() *Evidence { return e }

// mostOutput is the maximum number of lines of the operator's output that are stored.
const mostOutput = 40

// NewEvidence returns the evidence of a run in the present working directory.
func NewEvidence(command []string, timeline []Moment, output []string) Evidence {
	// The directory only improves an error message of replays.
	directory, _ := os.Getwd()
	return Evidence{Command: command, Directory: directory, Timeline: timeline, Output: output[max(0, len(output)-mostOutput):]}
}

// Moment is a line of a timeline.
type Moment struct {
	Seconds float64 `json:"seconds"`
	// Lane is the origin: Kit, Operator or Cluster.
	Lane string `json:"lane"`
	Text string `json:"text"`
}

// Lanes of a timeline.
const (
	Kit      = "kit"
	Operator = "operator"
	Cluster  = "cluster"
)

// Prefixes of the texts of moments that matter.
const (
	Broken = "BROKEN: "
	Fault  = "FAULT: "
	Edit   = "EDIT: "
)

// String describes a moment in a line.
func (m Moment) String() string { return fmt.Sprintf("%8.2f  %-8s  %s", m.Seconds, m.Lane, m.Text) }

// Matters reports whether a moment is a violation, a fault or an edit.
func (m Moment) Matters() bool {
	return strings.HasPrefix(m.Text, Broken) || strings.HasPrefix(m.Text, Fault) || strings.HasPrefix(m.Text, Edit)
}

// nearest returns the moments around the first violation, or the moments around the first fault and
// the last moments, or else the last moments.
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

// File is the name of the file that replays a finding.
func File(f Finding) string { return "finding-" + f.Case() + ".yaml" }

func save(dir string, f Finding) error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, File(f)), text, 0o600)
}

// Place returns the command that replays a finding: the given command, or its own. The program and the files
// must be in the working directory under the same relative paths.
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
