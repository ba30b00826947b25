// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast simulates future restarts with the manager's own decisions and its budget. [Run]
// determines which restarts will start, when they will start, and which ticks will be missed, if
// workloads change only through restarts. The package uses no client, clock or logger.
//
//	forecast.go    the input and the result
//	simulation.go  the ScheduledRestarts, and the sequence of decisions about them
//	change.go      pending restarts for changes of ConfigMaps and Secrets
//	order.go       the order of ScheduledRestarts (spec.after)
//	target.go      the workloads
//	rollout.go     the rollouts of the workloads, and how they end
//	evict.go       the pods of workloads that are restarted by eviction
//	wakeups.go     the queue of events
//	report.go      collects the results
package forecast
