// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
)

// process is the process of the operator, with its failures since the last start.
type process struct {
	operator *operator.Processes
	// breaks is set if the present fault breaks connections, so that the operator may exit, and
	// excused is the number of exits that faults explain.
	breaks  bool
	excused int
}

// start stops the operator if it runs, and starts a new process.
func (p *process) start() error {
	p.operator.Close()
	p.operator.Operator, p.excused = p.operator.Another(), 0
	return p.operator.Start()
}

// mark ends the present fault, which explains the exits so far.
func (p *process) mark() {
	if p.breaks {
		p.excused = len(p.operator.Ends())
	}
	p.breaks = false
}

// failures returns a line for each failure of the operator since the last start: panics, lines
// that match --fail-on-log, and unexpected exits. It returns nil while a stack trace is still being
// written.
func (p *process) failures() []string {
	if p.operator.Output.Tracing() {
		return nil // The origin of the panic is in the next lines.
	}
	lines, ends := p.operator.Output.Failures(), p.operator.AllLastWords()
	if p.breaks {
		ends = nil
	}
	for _, end := range ends[min(p.excused, len(ends)):] {
		lines = append(lines, judge.EndedByItself+end)
	}
	return lines
}
