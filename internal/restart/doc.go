// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restart restarts workloads on a schedule, each tick once.
//
// The tick is the identity: a restart for tick T is one patch that writes T
// itself into the pod template, as kubectl rollout restart writes the time of
// day. Doing that twice changes nothing. So nothing has to be remembered but
// in the status of the ScheduledRestart and in the template of its target, and
// a crash, a retry or two leaders cannot restart twice.
//
// The pure floor decides, without a client, a clock or a logger:
//
//	target.go     a Deployment, StatefulSet or DaemonSet, as far as it matters
//	gates.go      what must hold before a restart is started
//	decide.go     what to do about a ScheduledRestart now, and its next status
//	startup.go    how long the new pods took to become ready
//	status.go     its conditions
//	budget.go     how many restarts run at once, and who is next
//
// The controller in controller.go acts, pods.go finds the pods that a restart
// made, alarm.go wakes the controller when something is due, and observability.go has the names that dashboards and alerts depend on.
package restart
