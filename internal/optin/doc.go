// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optin creates ScheduledRestarts from annotations on workloads, so that a workload's own
// manifest can define when the workload is restarted.
//
// The opt-in writes only the target of a ScheduledRestart, and the schedule, the time zone and the
// maximum pod age for which the workload has an annotation. It also writes suspend, until another
// client changes it. All other fields belong to the clients that set them; server-side apply keeps
// track of the owners. The last applied values are recorded in an annotation of the
// ScheduledRestart, so that the opt-in can detect changes, and need not write anything if nothing
// has changed.
//
// The following files contain pure decisions, without a client, a clock or a logger:
//
//	annotations.go  parses the annotations of a workload
//	record.go       stores the last applied values in an annotation
//	names.go        chooses the name of a workload's ScheduledRestart
//	decide.go       decides the action for a workload's ScheduledRestart
//	setback.go      describes the changes by other clients that are reverted
//
// controller.go carries out the decisions, and watch.go selects the events that trigger them.
// definition.go declares the controller to the manager, and setup.go adds it to the manager. The
// reasons of the controller's events are constants in api/v1.
package optin
