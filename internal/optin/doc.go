// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optin makes ScheduledRestarts from annotations on Deployments,
// StatefulSets and DaemonSets, so that a workload's own manifest can say when
// it is restarted.
//
// The annotations of the workload are the wish. What the opt-in writes is only
// what they name: the target, and the schedule and the time zone if there are
// annotations for them. All else belongs to whoever sets it, and so does
// suspend as soon as somebody has set it to something else. Server-side apply
// keeps these owners apart; what was applied last is recorded on the
// ScheduledRestart itself, so that it can be told what is new, and nothing is
// written when nothing is.
//
// The pure floor decides, without a client, a clock or a logger:
//
//	annotations.go  what the annotations of a workload ask for
//	record.go       what was applied last
//	names.go        the name of the ScheduledRestart
//	decide.go       what to do about a workload's ScheduledRestart
//
// The controller in controller.go acts, and watch.go says which events it is called
// for. definition.go declares it for the manager, and setup.go adds it. The reasons of its events are constants of api/v1.
package optin
