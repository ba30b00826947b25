// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Program is a command for sh -c, with environment variables as NAME=VALUE.
type Program struct {
	Command     string
	Environment []string
	// Log, unless nil, records the starts and ends of its processes under the name LogName.
	Log     *observe.ProcessLog
	LogName string
}

// Programs manages the additional programs of a workload, which run in parallel with the operator
// (see Workload.Programs and Workload.Applications).
type Programs struct {
	commands []string
	running  []*operator.Operator
}

// StartPrograms starts additional programs. They connect to the API server directly and with
// administrator rights, so that faults do not affect them.
func StartPrograms(s *Sandbox, programs []Program) (p *Programs, err error) {
	p = &Programs{}
	for _, program := range programs {
		text := program.Command
		o := &operator.Operator{Command: []string{"sh", "-c", text}, Environment: program.Environment, Kubeconfig: s.dir.Kubeconfig(), Bin: s.lab.bin, Path: s.lab.path(), Output: &operator.Output{}, Log: program.Log, LogName: program.LogName}
		if err := o.Start(); err != nil {
			return p, fmt.Errorf("the program %q: %w", words.OneLine(text), err)
		}
		p.commands, p.running = append(p.commands, text), append(p.running, o)
	}
	return p, nil
}

// Restart kills the program with the given index, and starts it again.
func (p *Programs) Restart(i int) error {
	p.running[i].Kill()
	return p.running[i].Start()
}

// End kills the programs and their child processes.
func (p *Programs) End() {
	for _, o := range p.running {
		o.Close()
	}
}

// Ended returns an error if a program has exited.
func (p *Programs) Ended() error {
	for i, o := range p.running {
		if ends := o.Ends(); len(ends) > 0 {
			return fmt.Errorf("the program %q exited (%s) in a run without faults; its last output:\n%s", words.OneLine(p.commands[i]), ends[0], words.Indent(o.Output.Tail(10)))
		}
	}
	return nil
}
