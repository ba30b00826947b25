// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity computes, from nodes and the pods on them, how much room there is for new pods,
// how many copies of a pod fit, and whether the pods of lost nodes fit on the remaining nodes. The
// package has no client, clock or logger.
//
//	cluster.go    the nodes of a cluster, and the pods on them
//	amounts.go    vectors with an amount for each resource of a cluster
//	class.go      classes of pods that the scheduler treats alike
//	shape.go      a pod's constraints, and the names of the constraints that are not evaluated
//	term.go       affinity and anti-affinity terms
//	ports.go      the host ports of pods
//	counter.go    the number of pods that a term or constraint selects, by topology domain
//	relations.go  the running pods that constraints between pods depend on
//	index.go      finds these pods by their namespaces and labels
//	topology.go   the domains into which a label divides the nodes
//	rules.go      the constraints between a pod and other pods
//	volumes.go    storage objects, which volumes of pods depend on
//	volumes_claims.go  the constraints of a pod's volumes
//	volumes_places.go  the nodes on which volumes are usable
//	volumes_attach.go  attach limits, and the copies that fit within them
//	volumes_preemption.go  such constraints while pods are evicted
//	volumes_loss.go    such constraints while the pods of lost nodes are placed
//	devices.go    the devices of nodes, which ResourceClaims of pods depend on
//	devices_claims.go  the constraints of a pod's ResourceClaims
//	devices_fit.go     the copies that the free devices of nodes suffice for
//	devices_count.go   the devices of each DeviceClass
//	needs.go      volumes and devices together
//	copies.go     the number of copies that nodes take together under such constraints
//	admission.go  such constraints while the pods of lost nodes are placed
//	placement.go  assigns pods to nodes by first-fit
//	room.go       the resources of a pool that new pods can use, and why others are lost
//	largest.go    the nodes with the most free resources
//	fit.go        the number of copies of a pod that fit, and the limiting resources
//	loss.go       whether the pods of lost nodes fit on the remaining nodes
//	daemonsets.go the pods of DaemonSets on a new node
//	sequence.go   the cluster after a loss, and after pods were added
//	headroom.go   the node or zone of a pool whose loss would be worst
//	pending.go    the pods without a node, grouped by equal constraints and requests
//	preemption.go the pods that the scheduler would evict for a pod of higher priority
//	preemptor.go  the candidate nodes of a preemption, and their victims
//	budgets.go    the PodDisruptionBudgets that an eviction would violate
//	share.go      the namespaces and workloads with the largest requests
//	used.go       the measured CPU and memory usage of nodes
//
// # Evaluated constraints
//
// Constraints are evaluated by the rules of the scheduler's default plugins NodeResourcesFit,
// TaintToleration, NodeAffinity (including node selectors) and NodeUnschedulable, using
// k8s.io/component-helpers, and by those of InterPodAffinity, PodTopologySpread and NodePorts for
// pods whose labels are known. After [Cluster.WithVolumes], they are evaluated by the rules of
// VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits for volumes with claims, except
// for storage capacity. After [Cluster.WithDevices], constraints on devices are evaluated by the
// rules of DynamicResources for requests for a number of devices, except while the pods of lost
// nodes are placed. Partitionable devices and devices with consumable capacity are not evaluated.
// Constraints that are not evaluated are named, and the computed counts are then upper bounds.
// Constraints between pods make a count an upper bound only if it depends on the order in which the
// scheduler uses the nodes. The package test/room compares the counts with the scheduler's plugins in
// random clusters.
package capacity
