// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optin creates ScheduledRestarts from annotations on workloads, so that a workload's
// own manifest can define when it is restarted.
//
// The opt-in writes only the fields that the annotations of the workload set: the target, and
// the schedule, the time zone and the maximum pod age if they have annotations. All other
// fields belong to the clients that set them, and so does suspend once another client has
// changed it. Server-side apply separates these owners. The last applied values are recorded on
// the ScheduledRestart itself, so that the opt-in can detect changes, and writes nothing
// without changes.
//
// Pure decisions, without a client, a clock or a logger:
//
//	annotations.go  parses the annotations of a workload
//	record.go       the last applied values
//	names.go        the name of the ScheduledRestart
//	decide.go       decides the action for a workload's ScheduledRestart
//	setback.go      reports fields whose change by another client is reverted
//
// controller.go carries the decisions out, and watch.go selects the events that trigger it.
// definition.go declares the controller to the manager, and setup.go adds it to the manager.
// The reasons of its events are constants of api/v1.
package optin
