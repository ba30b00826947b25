// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
)

// process is the operator's process, including a record of its failures since the last start.
type process struct {
	operator *operator.Processes
	// breaks is set if the current fault breaks connections, so that the operator may exit. excused
	// is the number of exits of the operator that earlier faults explain.
	breaks  bool
	excused int
}

// start kills a running operator, and starts a new process.
func (p *process) start() error {
	p.operator.Close()
	p.operator.Operator, p.excused = p.operator.Another(), 0
	return p.operator.Start()
}

// mark ends the current fault. If the fault breaks connections, all exits of the operator so far
// are excused.
func (p *process) mark() {
	if p.breaks {
		p.excused = len(p.operator.Ends())
	}
	p.breaks = false
}

// failures returns a line for each failure of the operator since the last start: panics, output
// lines that match --fail-on-log, and unexpected exits. It returns nil while the operator is still
// writing a stack trace.
func (p *process) failures() []string {
	if p.operator.Output.Tracing() {
		return nil // The next lines will reveal the origin of the panic.
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
