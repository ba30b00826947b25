// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore looks for the faults that an operator does not survive. It plays a
// workload undisturbed, to learn what the operator reads and writes and where that ends,
// and then again and again, each time from the same state with one fault.
//
//	workload.go   the steps that a user writes, read from YAML
//	include.go    what workloads have in common
//	steps.go      performs a step, and waits for it
//	install.go    installs what is there before the operator
//	scratch.go    the directory of what runs, and what a run that was killed has left
//	lab.go        sandboxes for the runs, put back to a snapshot
//	labs.go       the sandboxes of several explorers
//	operator.go   the operator's process
//	output.go     what it writes: the end of it, and what must not be there
//	panics.go     where a panic came from
//	pod.go        the Pod that it has, and its webhooks
//	programs.go   other programs, beside it
//	rights.go     with whose rights it runs
//	scope.go      by what runs are judged, in numbers
//	resources.go  the kinds of objects that there are
//	requests.go   what the operator asked for, from the proxy's log
//	recorder.go   every version of every object
//	state.go      what is compared at the end, without what differs anyway
//	owners.go     who has written what of an object, by its managedFields
//	copies.go     what is left out of that where an operator copies what the kit wrote
//	strangers.go  who has a part in a run that has none
//	history.go    what is left out of that where the operator may not have seen all
//	faults/       the table of all faults
//	fault.go      the fault of a run, and where it is injected
//	inject.go     injects them
//	stale.go      starts on lists from an earlier moment
//	leases.go     frees the leases of a leader that is dead
//	learn.go      plays undisturbed runs, and says what is wrong with them
//	baseline.go   what is learnt from undisturbed runs
//	plan.go       which faults there are to play, and how promising each is
//	order.go      which is next, after those that were played
//	run.go        one run
//	session.go    the same sandbox and operator, for tools that play something else
//	disturb.go    the faults of writes in a session
//	actions.go    the actions of faults: other clients, other processes, the control plane
//	rival.go      another client that writes
//	rules.go      the rules of the proxy
//	rest.go       waits in a run until all is at rest
//	user.go       does what users do
//	settle.go     when all is at rest
//	habits.go     what happens again and again while all is at rest
//	advice.go     how users may have it come to rest
//	check.go      what is wrong with a run
//	patience.go   whether a write that is refused is tried again without waits that grow
//	invariants.go what must be true at every moment, in any cluster and by the workload
//	explore.go    learns, plays
//	queue.go      plays faults side by side, and confirms what they find
//	shrink.go     leaves out steps that a finding does not need
//	finding.go    what is found, and the file that replays it
//	report.go     says it, by package results, which also keeps what was played
package explore
