// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast simulates a round of a NodeMaintenance: when the drains of the nodes begin, how
// many begin in each window, and when the round ends. It assumes that the maintenance of every node
// takes the same time. The package uses no client, clock or logger.
//
//	forecast.go    the input, the result, and the time that a node takes
//	simulation.go  the nodes, the limits, and the sequence of drains
package forecast
