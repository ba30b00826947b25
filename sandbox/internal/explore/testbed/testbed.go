// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/application"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/inject"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// Options configure a testbed.
type Options struct {
	// Name is part of the names of the testbed's temporary files.
	Name string
	// New is set if the testbed needs an unused sandbox, to rule out leftovers of earlier
	// operators.
	New bool
	// Habits decides which object versions count as activity, and not as recurring changes of a
	// quiet cluster. Log stores the operator's requests.
	Habits *observe.Habits
	Log    *observe.Log
}

// Testbed is a sandbox with an operator and with recorders of objects and requests.
type Testbed struct {
	Sandbox  *lab.Sandbox
	Recorder *observe.Recorder
	Proxy    *proxy.Server
	Log      *observe.Log
	Habits   *observe.Habits
	Notes    *observe.Notes
	Operator *operator.Processes
	Programs *lab.Programs
	// Applications answer the operator in place of pods.
	Applications *application.Applications
	// Processes records the starts and ends of processes of the operator and the control plane.
	Processes *observe.ProcessLog

	undo []func()
}

// Open creates a testbed but does not start its operator. Prepare must be called first. The caller
// must call End.
func (m *Maker) Open(ctx context.Context, o Options) (_ *Testbed, err error) {
	t := &Testbed{Log: o.Log, Habits: o.Habits, Notes: &observe.Notes{}, Processes: &observe.ProcessLog{}}
	defer func() {
		if err != nil {
			t.End()
		}
	}()
	begin := m.lab.Begin
	if o.New {
		begin = m.lab.Fresh
	}
	if t.Sandbox, err = begin(ctx); err != nil {
		return nil, err
	}
	t.atEnd(t.Sandbox.Over)
	ctx, cancel := context.WithCancel(ctx)
	t.atEnd(cancel)
	if t.Recorder, err = observe.Start(ctx, t.Sandbox.Config, t.Habits, t.Log.AddLock); err != nil {
		return nil, err
	}
	t.Proxy, err = proxy.Start(proxy.Options{Upstream: t.Sandbox.Config, Namespace: "default", Listen: "127.0.0.1:0", Log: t.Log})
	if err != nil {
		return nil, err
	}
	t.atEnd(func() { _ = t.Proxy.Close() })
	scratch, err := m.Scratch()
	if err != nil {
		return nil, err
	}
	first, end, err := t.Sandbox.Operator(ctx, filepath.Join(scratch, o.Name), m.Command, t.Proxy, m.FailOnLog)
	t.atEnd(end)
	if err != nil {
		return nil, err
	}
	t.Applications, err = application.Start(t.Sandbox.Config, m.Workload.Applications, t.Log)
	t.atEnd(t.Applications.End)
	if err != nil {
		return nil, err
	}
	first.Log, first.LogName, first.Applications = t.Processes, observe.OperatorProcess, t.Applications.Serve
	t.Operator = &operator.Processes{Operator: first}
	t.atEnd(func() { t.Operator.Close() })
	programs := t.Applications.Programs(t.Processes)
	for _, command := range m.Workload.Programs {
		programs = append(programs, lab.Program{Command: command})
	}
	t.Programs, err = lab.StartPrograms(t.Sandbox, programs)
	t.atEnd(t.Programs.End)
	return t, err
}

// atEnd registers a function for End. End calls these functions in reverse order.
func (t *Testbed) atEnd(do func()) { t.undo = append(t.undo, do) }

// End stops the operator and releases the sandbox.
func (t *Testbed) End() {
	for _, do := range slices.Backward(t.undo) {
		do()
	}
}

// component performs an action, "kill" or "start", on a control plane component.
func (t *Testbed) component(ctx context.Context, name, action string) error {
	if err := t.Sandbox.Act(ctx, name, action); err != nil {
		return err
	}
	t.Processes.Add(name, map[string]observe.ProcessChange{"kill": observe.Killed, "start": observe.Started}[action])
	return nil
}

// restart kills the program of the named application, and starts it again.
func (t *Testbed) restart(name string) error {
	i := t.Applications.Program(name)
	if i < 0 {
		return fmt.Errorf("the application %s has no program", name)
	}
	return t.Programs.Restart(i)
}

// Injector returns an injector of faults for this testbed, which uses the given settler.
func (t *Testbed) Injector(settler *settle.Settler) *inject.Injector {
	return inject.New(inject.Parts{
		Rules: inject.Rules{Proxy: t.Proxy, Applications: t.Applications}, Restart: t.restart, Rival: &inject.Rival{Recorder: t.Recorder, Notes: t.Notes},
		Leadership: inject.Leadership{Log: t.Log, Recorder: t.Recorder}, Settler: settler,
		Recorder: t.Recorder, Log: t.Log, Notes: t.Notes, Operator: t.Operator, Processes: t.Processes, Component: t.component,
	})
}
