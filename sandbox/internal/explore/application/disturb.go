// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"net/http"
	"slices"
	"sync"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// Disturbance is a fault of one of the operator's requests to applications: the request number Nth,
// counted from 1, of the kind Call. If Call has no name, any path fits.
type Disturbance struct {
	// Rule is the name of the fault's rule in the log of requests.
	Rule string
	Call observe.Call
	Nth  int
	// Fault is one of Close, Hang, Delay, LoseAnswer and HangAnswer, which are the same as for requests
	// to the API server, or Stale: an earlier answer to the same request, if that was different.
	Fault fault.Fault
}

// Disturbed is a Disturbance that is in force.
type Disturbed struct {
	Disturbance
	// Fired is closed when the fault has hit its request. GaveUp is closed when the operator then
	// closes the connection.
	Fired, GaveUp <-chan struct{}

	fire, giveUp func()
	removed      chan struct{}
	seen         int
}

// Disturb puts a fault in force until Release is called. There must be no other.
func (a *Applications) Disturb(disturbance Disturbance) *Disturbed {
	fired, gaveUp := make(chan struct{}), make(chan struct{})
	d := &Disturbed{
		Disturbance: disturbance, Fired: fired, GaveUp: gaveUp, removed: make(chan struct{}),
		fire: sync.OnceFunc(func() { close(fired) }), giveUp: sync.OnceFunc(func() { close(gaveUp) }),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disturbed = d
	return d
}

// Release ends the fault in force, if there is one. A request that it delays is sent, and a connection
// that waits for an answer is reset.
func (a *Applications) Release() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.disturbed != nil {
		close(a.disturbed.removed)
		a.disturbed = nil
	}
}

// disturbs counts a request, and returns the fault that hits it, or nil.
func (a *Applications) disturbs(call observe.Call) *Disturbed {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.disturbed
	if d == nil {
		return nil
	}
	if d.Call.Name == "" {
		call.Name = ""
	}
	if call != d.Call {
		return nil
	}
	d.seen++
	if d.seen != d.Nth {
		return nil
	}
	return d
}

// reads reports whether a request reads from an application, so that an earlier answer may be sent
// again, as if by a copy that lags behind.
func (e *exchange) reads() bool { return e.Verb == http.MethodGet || e.Verb == http.MethodHead }

func (e *exchange) key() string { return e.Resource + " " + e.Verb + " " + e.target }

// earlier returns the answer to the previous request that is the same, or nil if there is none, or if
// it does more than read.
func (a *Applications) earlier(e *exchange) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers[e.key()]
}

// store stores the answer of an exchange so far for earlier. The caller must hold the lock of the
// exchange's conversation.
func (a *Applications) store(e *exchange) {
	if !e.reads() || len(e.answer) == 0 || len(e.answer) > mostAnswer || e.disturbed != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[e.key()] = slices.Clone(e.answer)
}
