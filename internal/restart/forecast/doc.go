// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast plays the coming time through the manager's own decisions and its budget:
// [Run] says which restarts start when, and which will be missed, if nothing but time changes. It has
// no client, clock or logger.
//
//   - forecast.go: the input and the result
//   - simulation.go: the objects, decision after decision
//   - change.go: changes of ConfigMaps and Secrets that wait
//   - order.go: the objects that come after others
//   - target.go: the workloads, and how restarts change them
//   - evict.go: the pods of workloads that are restarted by eviction
//   - wakeups.go: the next event
//   - report.go: the report of the decisions
package forecast
