// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenants checks that a tenant with the role edit in one or two namespaces takes
// nothing away from a neighbour or from the cluster. One manager runs for all tests,
// with few slots for restarts. The tenant's tricks are played one after another; some of
// them continue until the end.
//
// After each trick the neighbour is checked: a change of its pool takes effect; and a restart that it
// requests, one for the age of its pods and one for a change of its ConfigMap run when it is
// their turn; and the page follows. Turns and requests are counted, by the audit log: how fast the
// machine is does not matter. At the end come the neighbour's schedule, its deadline, and the
// manager's cost: memory, metric series and writes.
package tenants
