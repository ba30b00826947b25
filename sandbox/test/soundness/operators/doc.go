// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operators contains the small operators of the soundness suite. With --mistake NAME, the
// named operator makes its mistake; with --right NAME, it behaves the same without the mistake. The
// lists of pairs in package soundness describe the mistakes. The maps reconcilers and programs list
// the operators by the names of the pairs.
//
//	main.go      the command line, and the list of all operators
//	operator.go  shared parts: caches, the queue, writes and status updates
//	writes.go    mistakes about failed writes, and processes that are killed after a write
//	caches.go    mistakes about delayed and missing watch events
//	loops.go     mistakes of operators with their own watches, and of leader election
//	owners.go    mistakes about ownership and deletions
//	kinds.go     mistakes about other kinds of objects and the status, in operators that never rest,
//	             and in operators whose result varies between runs
//	controllers.go  mistakes about pods, ReplicaSets and claims
//	edits.go     mistakes about edits of a spec, for fuzz
package main
