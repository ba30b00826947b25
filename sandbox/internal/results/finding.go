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

// Finding is something that is wrong. Each has Evidence.
type Finding interface {
	// Case is the ID of the case with which it was found.
	Case() string
	// Title says what is wrong, and Where in which case, each in a line; Details is all
	// that is wrong.
	Title() string
	Where() string
	Details() []string
	// Describe writes what it is about for a terminal, below its title.
	Describe(w io.Writer)
	// Confirmed reports whether it is certain, or was found more than once.
	Confirmed() bool
	// Kind is the same for findings that are probably of one mistake.
	Kind() string
	// Rank orders findings: the least ones tell most.
	Rank() []int

	evidence() *Evidence
}

// Evidence is what findings have beside what is wrong.
type Evidence struct {
	// Command is the operator's, as it was typed, and Directory where that was. Paths in
	// a finding are relative to that directory, or to one like it.
	Command   []string `json:"command"`
	Directory string   `json:"directory,omitempty"`
	// Repeated is how often it was found again, and Tries how often that was tried. One
	// that is certain from what has happened is not tried again, nor one for which there was
	// no time.
	Repeated int `json:"repeated"`
	Tries    int `json:"tries"`
	// Second says what was different when it was played again and not found.
	Second string `json:"second,omitempty"`
	// Timeline is what happened, and Output how the operator's output ended.
	Timeline []Moment `json:"timeline,omitempty"`
	Output   []string `json:"output,omitempty"`

	// dir is where its file is, if it was read from there.
	dir string
}

func (e *Evidence) evidence() *Evidence { return e }

// mostOutput is how much of the operator's output is kept.
const mostOutput = 40

// NewEvidence describes what was seen.
func NewEvidence(command []string, timeline []Moment, output []string) Evidence {
	// Without it, only an error of a replay says less.
	directory, _ := os.Getwd()
	return Evidence{Command: command, Directory: directory, Timeline: timeline, Output: output[max(0, len(output)-mostOutput):]}
}

// Moment is a line of a timeline.
type Moment struct {
	Seconds float64 `json:"seconds"`
	// Lane is who did it.
	Lane string `json:"lane"`
	Text string `json:"text"`
}

// Lanes of a timeline.
const (
	Kit      = "kit"
	Operator = "operator"
	Cluster  = "cluster"
)

// Beginnings of the texts of the moments that matter most.
const (
	Broken = "BROKEN: "
	Fault  = "FAULT: "
	Edit   = "EDIT: "
)

// String describes a moment in a line.
func (m Moment) String() string { return fmt.Sprintf("%8.2f  %-8s  %s", m.Seconds, m.Lane, m.Text) }

// Matters reports whether it is one of the moments that a timeline is shown for.
func (m Moment) Matters() bool {
	return strings.HasPrefix(m.Text, Broken) || strings.HasPrefix(m.Text, Fault) || strings.HasPrefix(m.Text, Edit)
}

// nearest returns the moments around the first one that is broken, or those around the first
// fault and the last ones, or else the last ones.
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

// Place returns the command with which a finding is played again: another, if there is
// one, or its own. What that and the files name must be in the working directory as it was
// when it was found.
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
