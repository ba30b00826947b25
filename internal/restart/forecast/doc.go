// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast plays the coming time through the manager's own decisions and its budget:
// [Run] says what starts when, and what will be missed, if nothing but time changes. It has
// no client, clock or logger.
//
//   - forecast.go: what is played, and what comes of it
//   - simulation.go: the objects, one decision after the other
//   - change.go: changes of ConfigMaps and Secrets that wait
//   - order.go: those that come after others
//   - target.go: the workloads, and how restarts change them
//   - evict.go: the pods of those that are restarted by eviction
//   - wakeups.go: what happens next
//   - report.go: what is kept of the decisions
package forecast
