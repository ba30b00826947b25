// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// startPrograms starts the programs that run beside the operator. They reach the API server as
// the administrator, and not through the proxy: no fault is theirs.
func (r *run) startPrograms() error {
	for _, text := range r.Workload.Programs {
		p := &operator{command: []string{"sh", "-c", text}, kubeconfig: r.sandbox.dir.Kubeconfig(), bin: r.lab.bin, path: r.lab.path(), output: &output{}}
		if err := p.start(); err != nil {
			return fmt.Errorf("the program %q: %w", oneLine(text), err)
		}
		r.programs = append(r.programs, p)
	}
	return nil
}

// endPrograms ends them, and what they have started.
func (r *run) endPrograms() {
	for _, p := range r.programs {
		p.close()
	}
}

// endedProgram is an error if one has ended by itself.
func (r *run) endedProgram() error {
	for i, p := range r.programs {
		if ends := p.ends(); len(ends) > 0 {
			return fmt.Errorf("the program %q ended (%s), though nothing was disturbed; its output ends with\n%s", oneLine(r.Workload.Programs[i]), ends[0], indent(p.output.tail(10)))
		}
	}
	return nil
}
