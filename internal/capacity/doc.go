// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity computes, from nodes and the pods on them, how much room there is, how many
// copies of a pod fit, and whether pods find a place if nodes are lost. It has no client, clock or
// logger.
//
//	cluster.go    the nodes with the pods on them
//	amounts.go    amounts of all resources of a cluster as vectors
//	class.go      classes of pods that the scheduler treats alike
//	shape.go      the constraints of a pod, and the names of the constraints not evaluated here
//	repels.go     the pods that running pods keep away from themselves
//	placement.go  a node for each of some pods, by first-fit
//	level.go      the usable resources of a pool, and the causes of the loss of the rest
//	largest.go    the largest pods that fit a node now
//	fit.go        how many copies of a pod fit, and why not more
//	loss.go       whether the pods of lost nodes find a place on the others
//	headroom.go   the worst node or zone to lose of a pool
//	pending.go    the pods that no node was found for, in groups of pods that are alike
//	share.go      the namespaces and workloads that request most
//	used.go       how much nodes use, by their metrics
//
// # Constraints that are evaluated
//
// The rules are the same as in the scheduler's default plugins NodeResourcesFit, TaintToleration,
// NodeAffinity (with node selectors) and NodeUnschedulable, with the code of
// k8s.io/component-helpers. Constraints on other pods, volumes or devices are not evaluated:
// [Shape.Unevaluated] names them, and a count is then an upper bound.
package capacity
