// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restart restarts workloads on a schedule, once for each tick.
//
// The tick is the identity of a restart: a restart for the tick T is a patch that
// writes T itself into the workload, where kubectl rollout restart writes the current
// time. Doing that twice changes nothing. So all memory that is needed is in the status
// of the ScheduledRestart and in its target, and neither a crash, a retry nor a second
// leader can restart twice.
//
// The package decision decides, the package budget limits how many restarts are in progress
// at once, the package workload knows the kinds of targets, and this package carries out the
// decisions:
//
//	definition.go      the needs of the controller from the manager
//	options.go         its options
//	setup.go           its watches
//	controller.go      the reconciler
//	memory.go          all that the process remembers of a ScheduledRestart
//	act.go             writes the status, and carries out decisions
//
// Facts that a decision depends on:
//
//	gather.go          gathers the facts, and decides
//	target.go          the workload
//	nodes.go           the nodes that a DaemonSet is restarted without
//	pods.go            how long the new pods took to become ready
//	pod_ages.go        how old the pods are
//	order.go           the ScheduledRestarts that come first, and whom a change of these matters to
//	configs.go         the content of ConfigMaps and Secrets, by hashes, and to whom it matters
//	config_reader.go   the content that a decision depends on
//	config_watches.go      the optional watches of ConfigMaps and Secrets
//
// Acts:
//
//	send.go            sends a tick, if the API server still has the spec that was decided about
//	evictions.go       looks at the pods of a restart that evicts them, and evicts them
//	eviction_attempts.go   remembers evictions that were tried
//	claims.go          ticks that are claimed before they are due
//	slot.go            when a slot of the budget is released
//	defaults.go        writes the default schedule into specs that name no trigger
//	refusals.go        how often a status is tried that is refused, and why a tick could not be sent
//	miss_limiter.go    how many missed ticks of a namespace are reported at once
//	report.go          reports ticks by events, metrics and the log
//	metrics.go         its metrics
//	eviction_metrics.go    the metrics of evictions
//	storms.go          the metric of changes that keep coming
//	overdue.go         the metric of schedules that are overdue
//	schedule_gauge.go  the metric of schedules by their status
//
// The package forecast plays the coming time through the same decisions and the same budget. The
// package evict chooses the pods that are evicted next, the package scale reads targets of
// which only the scale subresource is known, and the package query asks the queries of the
// manager's operator.
//
// internal/kube/wakeup wakes the controller when something is due. The reasons of conditions,
// ticks and events are constants of api/v1.
package restart
