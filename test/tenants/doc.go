// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenants checks that a hostile tenant with the role edit in one or two namespaces takes
// nothing away from a well-behaved neighbouring tenant (the neighbour) or from the cluster. A
// single manager, with few slots for restarts, runs for all tests. The hostile tenant's attacks
// (tricks) run one after another; some of them continue until the end.
//
// After each trick the neighbour is checked. A change of its pool must take effect, and three of
// its restarts must start when it is their turn: a requested restart, a restart for the age of its
// pods, and a restart for a change of its ConfigMap. The page of kubectl tide dashboard must show
// these restarts. Turns and requests are counted in the audit log, so the speed of the machine does
// not matter. At the end, the tests check the neighbour's schedule, its deadlines, and the
// manager's cost: memory, metric series and writes.
package tenants
