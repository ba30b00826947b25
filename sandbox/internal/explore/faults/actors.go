// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import "context"

// Actor performs the actions of faults after the proxy's rule has hit a request or event.
type Actor interface {
	// Crash kills the operator and restarts it.
	Crash(ctx context.Context) error
	// CutOff closes all of the operator's connections for a while.
	CutOff(ctx context.Context) error
	// KillComponent kills a control plane component and restarts it.
	KillComponent(ctx context.Context, name string) error
}

// RunActor performs all actions of Actor, and the actions that need the baseline of a workload. The
// baseline contains, for example, the durations of steps and the objects that users created.
type RunActor interface {
	Actor
	// CrashTwice kills and restarts the operator, and does so again at the first write of the new
	// process.
	CrashTwice(ctx context.Context) error
	// Overtake changes objects as another client before the operator's delayed write arrives, and
	// hides these changes from the operator for a while.
	Overtake(ctx context.Context) error
	// Pause suspends the operator process that is the leader until another process has taken over.
	Pause(ctx context.Context) error
	// ListAgain makes the operator repeat its list of the fault's resource at the end of the step.
	ListAgain(ctx context.Context) error
	// StartStale restarts the operator at the end of the step with outdated lists.
	StartStale(ctx context.Context) error
}

// ApplicationActor performs the actions of faults that have hit a request to an application.
type ApplicationActor interface {
	// WaitForEnd waits until the operator has closed the connection that gets no answer.
	WaitForEnd(ctx context.Context) error
	// LoseState restarts the program of an application, whose pods are then not ready for a moment.
	LoseState(ctx context.Context) error
	// FallBack makes the pods of an application not ready for a moment.
	FallBack(ctx context.Context) error
}
