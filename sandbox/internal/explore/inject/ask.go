// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/application"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// mostSilence is the time within which an operator has to close a connection on which an application
// does not answer. It is less if --hold is.
const mostSilence = 2 * time.Minute

// asker performs the actions of faults that hit a request to an application.
type asker struct {
	Parts
	application string // the name of the application
	disturbed   *application.Disturbed
	// from is the index in the log of the first request after the fault was armed. hold and patience
	// are the same as of a RunInjector.
	from           int
	hold, patience time.Duration
}

var _ faults.ApplicationActor = (*asker)(nil)

// asker returns the actions of a fault that hits a request to an application.
func (i *RunInjector) asker() *asker {
	return &asker{Parts: i.Parts, application: i.fault.Call.Resource, disturbed: i.disturbed, from: i.from, hold: i.hold, patience: i.patience}
}

// WaitForEnd waits until the operator closes the connection on which an application does not answer.
// If it does not in time, the connection stays open, and the operator is judged as it is then.
func (a *asker) WaitForEnd(ctx context.Context) error {
	limit := min(a.hold, mostSilence)
	select {
	case <-a.disturbed.GaveUp:
		a.Notes.Add("the operator has closed the connection")
	case <-time.After(limit):
		a.Notes.Add("the operator has waited for an answer for %s", limit)
	case <-ctx.Done():
	}
	a.Settler.Act()
	return ctx.Err()
}

// LoseState restarts the program of the application that the operator's delayed request is for, and
// makes the application's pods not ready, as when a container ends. The delayed request then fails,
// because its connection was to the program that has ended.
func (a *asker) LoseState(ctx context.Context) error {
	if err := a.Restart(a.application); err != nil {
		return err
	}
	a.Notes.Add("the program of %s is killed and started again", a.application)
	return a.FallBack(ctx)
}

// FallBack makes the pods of the application not ready that the operator's delayed request is for, and
// then lets the request through.
func (a *asker) FallBack(ctx context.Context) error {
	pods, err := a.Rules.Applications.FallBack(ctx, a.application)
	if err != nil {
		return err
	}
	a.Notes.Add("%d pods of %s are not ready", pods, a.application)
	pass(ctx, moment)
	a.Rules.Remove(faults.FaultRule)
	a.Settler.Act()
	return ctx.Err()
}

// askedAgain waits until the operator has asked the application again after the fault, but no longer
// than by which a step may take longer with a fault. An operator may rightly wait before it asks again,
// and its cluster is quiet meanwhile.
func (a *asker) askedAgain(ctx context.Context) error {
	answered := func(r observe.Request) bool {
		return r.ToApplication() && r.Resource == a.application && r.Status != 0 && (r.Rule == "" || r.Fault == fault.Delay)
	}
	hit := func(r observe.Request) bool { return r.Rule == faults.FaultRule }
	await(ctx, a.patience, func() bool {
		requests := a.Log.Since(a.from)
		first := slices.IndexFunc(requests, hit)
		return first >= 0 && slices.ContainsFunc(requests[first:], answered)
	})
	a.Settler.Act()
	return ctx.Err()
}
