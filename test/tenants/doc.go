// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenants shows that a tenant who has the role edit in a namespace, or
// in two, takes nothing from a neighbour or from the cluster. One manager runs
// for all of it, with few slots for restarts. The tenant's tricks are played one
// after the other, some of them go on until the end, and after each the
// neighbour is asked: a pool that was changed is in force within seconds, and a
// restart that was asked for runs. At the end come the neighbour's schedule, its
// deadline, and what the manager has cost: memory, metric series and writes.
package tenants
