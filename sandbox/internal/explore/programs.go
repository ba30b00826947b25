// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// programs are the programs that run beside the operator.
type programs struct {
	commands []string
	running  []*operator
}

// startPrograms starts the programs that run beside the operator. They reach the API server as
// the administrator, and not through the proxy: no fault is theirs.
func startPrograms(s *sandbox, commands []string) (p *programs, err error) {
	p = &programs{commands: commands}
	for _, text := range commands {
		o := &operator{command: []string{"sh", "-c", text}, kubeconfig: s.dir.Kubeconfig(), bin: s.lab.bin, path: s.lab.path(), output: &output{}}
		if err := o.start(); err != nil {
			return p, fmt.Errorf("the program %q: %w", oneLine(text), err)
		}
		p.running = append(p.running, o)
	}
	return p, nil
}

// end ends them, and what they have started.
func (p *programs) end() {
	for _, o := range p.running {
		o.close()
	}
}

// ended is an error if one has ended by itself.
func (p *programs) ended() error {
	for i, o := range p.running {
		if ends := o.ends(); len(ends) > 0 {
			return fmt.Errorf("the program %q ended (%s), though nothing was disturbed; its output ends with\n%s", oneLine(p.commands[i]), ends[0], indent(o.output.tail(10)))
		}
	}
	return nil
}
