// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity compares the answers of kubectl tide pools fit and pools loss with the decisions
// of the real scheduler. Each test runs in random worlds, which are sets of a few nodes with pods.
//
//	world_test.go      a world: random nodes, and the creation of its nodes and pods
//	shape_test.go      random pod specs, and whether their copies are scheduled
//	fit_test.go        exactly as many copies are scheduled as pools fit reports
//	between_test.go    the same for pods with affinity, spread constraints, ports or volumes
//	volumes_test.go    the same for pods with volumes, by zones and attach limits
//	devices_test.go    the same for pods with ResourceClaims, by the devices of nodes
//	claims_test.go     worlds of nodes with attach limits, and the comparison of answers about volumes
//	claims_shared_test.go, claims_owned_test.go
//	                   pools fit for copies that share claims, and for copies that bring their own
//	claims_lost_test.go
//	                   pools loss and pools pending for pods with claims, while claims change
//	claims_rights_test.go
//	                   answers about volumes and preemption to users who lack a right
//	like_test.go       pools fit --like with each kind of workload
//	preemption_test.go the pods that the scheduler evicts are those that pools fit names
//	evictions_test.go  the same for each rule of preemption, and for pods with volumes
//	evictions_priority_test.go
//	                   the priority of copies, and pools pending before and while pods are evicted
//	loss_test.go       lost nodes' pods are scheduled if they fit according to pools loss
//	best_test.go       the best placement of pods on nodes, by trying all placements
//	requested_test.go  a pool's requests equal the output of kubectl describe node
//	room_test.go       the usable, lost and free amounts and the largest fits in a pool's status
//	headroom_test.go   the condition Headroom, compared with the best placement
//	headroom_edits_test.go, headroom_hostile_test.go, headroom_faults_test.go
//	                   the condition while the pool is edited, with hostile tenants, and after crashes
//	follow_test.go     a watch of each version of the condition Headroom
//	input_test.go      invalid input, missing rights, and control characters
//
// CASES sets the number of random worlds in each test (20 by default); SEED sets the seed of the
// first world (1 by default). A failed test names its world's seed, for instance 17; to run only
// that world, set SEED=17 CASES=1.
package capacity
