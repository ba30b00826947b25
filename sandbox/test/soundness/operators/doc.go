// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operators is the small operators of the soundness suite: each makes one mistake with
// --mistake NAME, and with --right NAME does the same without it. The pairs are described in the
// table of the package soundness; the operators of a pair, by its name, are in reconcilers.
//
//	main.go      the command line, and the list of all operators
//	operator.go  what they share: caches, the queue, how they write objects and report
//	writes.go    mistakes about writes that fail, or after which the process is killed
//	caches.go    mistakes about events that are late or never come
//	loops.go     mistakes of programs with their own watches, and of leaders
//	owners.go    mistakes about what belongs to whom, and about deletions
//	kinds.go     mistakes that show in other kinds of objects, in the status, and in operators that
//	             never quite rest or come to one of several ends
//	controllers.go  mistakes about pods, ReplicaSets and claims
//	edits.go     mistakes about what users write into a spec, for fuzz
package main
