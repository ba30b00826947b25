// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"sync"
	"time"
)

// ProcessEvent is the start, the end or another change of a process of the operator or the control
// plane.
type ProcessEvent struct {
	Time time.Time
	// Of names the process: OperatorProcess, or the name of a control plane component or of an
	// application.
	Of   string
	What ProcessChange
}

// OperatorProcess names the operator in process events.
const OperatorProcess = "operator"

// ProcessChange is a kind of process event.
type ProcessChange string

// Kinds of process events. Killed means that SIGKILL ended the process, and Exited means any other
// end.
const (
	Started   ProcessChange = "started"
	Killed    ProcessChange = "killed"
	Exited    ProcessChange = "exited"
	Suspended ProcessChange = "suspended"
	Resumed   ProcessChange = "resumed"
)

// ProcessLog records the process events of a run, as reported by the kernel and the control plane.
// A nil log records nothing.
type ProcessLog struct {
	mu     sync.Mutex
	events []ProcessEvent
}

// Add records an event with the current time.
func (l *ProcessLog) Add(of string, what ProcessChange) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ProcessEvent{Time: time.Now(), Of: of, What: what})
}

// Since returns the events at or after a time, in order.
func (l *ProcessLog) Since(began time.Time) []ProcessEvent {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.events), func(e ProcessEvent) bool { return e.Time.Before(began) })
}
