// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restart restarts workloads on a schedule, once for each tick.
//
// A restart is identified by its tick. The restart for the tick T is a patch that writes T itself
// into the workload, whereas kubectl rollout restart writes the current time. Applying the patch
// twice changes nothing. All necessary state is in the status of the ScheduledRestart and in its
// target, so neither a crash, a retry nor a second leader can restart a workload twice.
//
// The package decision makes the decisions, the package budget limits the number of restarts in
// progress, and the package workload implements the kinds of targets. This package carries out the
// decisions:
//
//	definition.go      declares the controller "scheduled-restart" to the manager
//	options.go         the command-line options of the controller
//	setup.go           the watches of the controller
//	controller.go      the reconciler
//	memory.go          the in-memory state of each ScheduledRestart
//	act.go             writes the status, and carries out decisions
//
// The following files gather the facts that decisions depend on:
//
//	gather.go          gathers the facts, and makes the decision
//	target.go          reads the workload
//	nodes.go           excludes NotReady nodes from DaemonSets
//	pods.go            the startup times of new pods
//	pod_ages.go        the ages of pods
//	order.go           reads predecessors, and enqueues followers (spec.after)
//	configs.go         hashes of ConfigMaps and Secrets, and the dependent ScheduledRestarts
//	config_reader.go   reads the ConfigMaps and Secrets that a target uses
//	config_watches.go      the optional watches of ConfigMaps and Secrets
//
// The following files carry out and report decisions:
//
//	send.go            sends a tick if the spec on the API server has not changed since the decision
//	evictions.go       reads the pods of a restart by eviction, and evicts them
//	eviction_attempts.go   remembers eviction attempts
//	claims.go          tracks ticks that are claimed before they are due
//	slot.go            assigns and releases slots of the restart budget
//	defaults.go        writes the default schedule into specs without a trigger
//	refusals.go        limits retries of rejected writes, and remembers why sending a tick failed
//	miss_limiter.go    limits the rate at which missed ticks of a namespace are reported
//	report.go          reports ticks by events, metrics and the log
//	metrics.go         the metrics of the controller
//	eviction_metrics.go    the metrics of evictions
//	storms.go          the metric of ConfigMaps and Secrets that keep changing
//	overdue.go         the metric of overdue schedules
//	schedule_gauge.go  the metric of schedules by the reason of their condition Ready
//
// The package forecast simulates future restarts with the same decisions and the same budget. The
// package evict chooses the pods to evict next. The package scale reads targets of arbitrary kinds
// through their scale subresource. The package query runs the administrator's Prometheus queries.
//
// The package internal/kube/wakeup wakes the controller when a decision is due. The constants for
// the reasons of conditions, ticks and events are in api/v1.
package restart
