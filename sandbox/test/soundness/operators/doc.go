// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operators contains the small operators of the soundness suite, each in two variants. With
// --mistake NAME, the command runs the buggy variant of the named operator; with --right NAME, it
// runs the correct variant. The lists of pairs in package soundness describe the bugs. The maps
// reconcilers and programs list the operators by the names of the pairs.
//
//	main.go      the command line, and the list of all operators
//	operator.go  shared parts: caches, the queue, writes and status updates
//	writes.go    bugs about failed writes, and processes that are killed after a write
//	caches.go    bugs about delayed and missing watch events
//	loops.go     bugs of operators with their own watches, and of leader election
//	owners.go    bugs about ownership and deletions
//	kinds.go     bugs about other kinds of objects and the status, in operators that never rest,
//	             and in operators whose result varies between runs
//	controllers.go  bugs about pods, ReplicaSets and claims
//	edits.go     bugs about edits of a spec, for fuzz
package main
