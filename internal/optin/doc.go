// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optin creates ScheduledRestarts from annotations on Deployments,
// StatefulSets and DaemonSets, so that a workload's own manifest can say when it is
// restarted.
//
// The opt-in writes only what the annotations of the workload name: the target, and
// the schedule and the time zone if there are annotations for them. All other fields
// belong to the clients that set them, and so does suspend as soon as another client
// has changed it. Server-side apply keeps these owners apart. What was applied last
// is recorded on the ScheduledRestart itself, so that the opt-in knows what is new,
// and writes nothing if nothing is.
//
// The pure floor decides, without a client, a clock or a logger:
//
//	annotations.go  what the annotations of a workload ask for
//	record.go       what was applied last
//	names.go        the name of the ScheduledRestart
//	decide.go       what to do about a workload's ScheduledRestart
//	setback.go      what of that sets back what another client has changed
//
// The controller in controller.go acts, and watch.go says which events it is called
// for. definition.go declares it for the manager, and setup.go adds it to the manager.
// The reasons of its events are constants of api/v1.
package optin
