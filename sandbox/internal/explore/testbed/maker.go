// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Limits are the time limits by which an operator is judged.
type Limits struct {
	// Quiet is the time without changes after which a cluster counts as quiet in baseline runs.
	// Later runs use a time learned from the baseline runs, which is never longer.
	Quiet time.Duration
	// Settle is the maximum time until the cluster is quiet in a baseline run. Patience is the
	// additional time allowed in a run with a fault or an edit.
	Settle, Patience time.Duration
}

// mostLearning is the maximum ratio between the quiet time of a baseline run and Limits.Quiet.
const mostLearning = 4

// MostQuiet returns the maximum quiet time of baseline runs. If a busy machine may have stalled the
// operator for longer than the quiet time, the baseline runs are repeated with a longer quiet time,
// up to this maximum.
func (l Limits) MostQuiet() time.Duration { return mostLearning * l.Quiet }

// Maker creates testbeds for an operator. All testbeds begin with the same cluster state.
type Maker struct {
	// Setup defines the operator, and the testbeds' nodes, manifests and programs.
	lab.Setup
	// Dir is the parent directory of results and running sandboxes.
	Dir       string
	FailOnLog *regexp.Regexp
	// Labs holds sandboxes shared with other makers. If it is nil, this maker creates its own
	// sandboxes.
	Labs *lab.Labs

	scratch *lab.Scratch
	lab     *lab.Lab
	// sweep kills the processes that operators, programs and commands of steps have left behind.
	sweep func()
}

// Inputs returns everything that the operator's results depend on. `files` lists the names of the
// input files, `subject` is their content, and `judging` contains the flags that affect the
// verdict, except for FailOnLog.
func (m *Maker) Inputs(files []string, subject, judging any) results.Inputs {
	return results.Inputs{Command: m.Command, Of: files, Installed: m.Workload.Install, Commands: m.Workload.Commands(), Subject: subject, Judging: []any{judging, m.FailOnLog}}
}

// Flags returns the values of the flags that determine which runs count as findings. `hold` is the
// time for which faults hold back events, or 0.
func (m *Maker) Flags(l Limits, hold time.Duration) results.Flags {
	flags := results.Flags{Hold: metav1.Duration{Duration: hold}}
	flags.Quiet.Duration, flags.Settle.Duration, flags.Patience.Duration = l.Quiet, l.Settle, l.Patience
	if m.FailOnLog != nil {
		flags.FailOnLog = m.FailOnLog.String()
	}
	return flags
}

// Prepare creates the initial cluster state of all testbeds. Later calls do nothing.
func (m *Maker) Prepare(ctx context.Context, progress io.Writer) (err error) {
	if m.lab != nil {
		return nil
	}
	dir, err := m.Scratch()
	if err != nil {
		return err
	}
	if m.sweep, err = incluster.StartSweeper(dir); err != nil {
		return err
	}
	if m.Labs != nil {
		m.lab, err = m.Labs.Lab(ctx, &m.Setup, progress)
	} else {
		m.lab, err = m.MakeLab(ctx, dir, progress)
	}
	if err != nil {
		return err
	}
	for _, text := range m.lab.Warnings {
		fmt.Fprintf(progress, "warning: %s\n", text)
	}
	fmt.Fprintln(progress, m.lab.Why)
	if m.OneAtATime() && len(m.Workload.Applications) > 0 {
		return errors.New("applications: the operator has the network of this machine, from where it cannot reach them: leave out hostNetwork, or permit namespaces as said above")
	}
	if m.OneAtATime() {
		fmt.Fprintln(progress, "The operator has the network of this machine, where a second process may need the same port: runs are played one at a time, whatever --jobs says, and without the fault that needs two processes (Pause).")
	}
	return nil
}

// OneAtATime reports whether operators share this machine's network, in which only one process can
// listen on a port. Call Prepare first.
func (m *Maker) OneAtATime() bool { return m.Workload.HostNetwork || m.lab.Alone }

// Scratch returns a directory for temporary files, which Close removes.
func (m *Maker) Scratch() (_ string, err error) {
	if m.scratch == nil {
		if m.scratch, err = lab.NewScratch(m.Dir); err != nil {
			return "", err
		}
	}
	return m.scratch.Dir, nil
}

// Close stops and removes this maker's own sandboxes. It does not close shared Labs.
func (m *Maker) Close() {
	if m.lab != nil && m.Labs == nil {
		m.lab.Close()
	}
	if m.sweep != nil {
		m.sweep()
	}
	if m.scratch != nil {
		m.scratch.Remove()
	}
}
