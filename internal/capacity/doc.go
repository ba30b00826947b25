// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity answers, from nodes and the pods on them, whether there is room, for what,
// and what happens if nodes are lost. It has no client, clock or logger.
//
//	cluster.go   the nodes, what is free on them, and classes of pods that are alike
//	shape.go     what the scheduler evaluates of a pod, and what it evaluates and this does not
//	repels.go    which pods those that run keep away from themselves
//	level.go     what of a pool's resources is usable, and why the rest is not
//	largest.go   the largest pods that fit a node now
//	fit.go       how many copies of a pod fit, and why not more
//	loss.go      whether the pods of lost nodes find a place on the others
//	headroom.go  the worst node or zone to lose of a pool
//	pending.go   the pods that no node was found for, in groups of those that are alike
//	share.go     which namespaces and workloads request most
//	used.go      what nodes use, by their metrics
//
// # What is evaluated
//
// The rules are those of the scheduler's default plugins NodeResourcesFit, TaintToleration,
// NodeAffinity (with node selectors) and NodeUnschedulable, with the code of
// k8s.io/component-helpers. What depends on other pods, volumes or devices is not evaluated:
// [Shape.Unevaluated] names it, and a count is then at most that.
package capacity
