// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity holds what kubectl tide pools fit and pools loss answer against what the
// real scheduler does in random worlds of a few nodes.
//
//	world_test.go      random nodes, and how the pods and nodes of a world are created
//	shape_test.go      random shapes of pods, and whether their copies are scheduled
//	fit_test.go        as many copies are scheduled as pools fit says, and no more
//	atmost_test.go     where pools fit says "at most", no more than that are
//	like_test.go       a copy of each kind of workload
//	loss_test.go       pods of lost nodes find a place where pools loss says so
//	best_test.go       the best of all placements, by trying each
//	requested_test.go  what a pool requests is what kubectl describe node prints
//	room_test.go       what a pool's status says of usable, lost and free, and its largest fits
//	headroom_test.go   the condition Headroom against the best of all placements
//	headroom_edits_test.go, headroom_hostile_test.go, headroom_faults_test.go
//	                   the same while it is edited, with hostile tenants, and after crashes
//	follow_test.go     each condition Headroom that a pool has had
//	input_test.go      wrong input, missing rights, and hostile text
//
// CASES is how many random worlds each test has (20), and SEED the first of their seeds (1):
// a world that fails names its seed, and SEED=17 CASES=1 is that world alone.
package capacity
