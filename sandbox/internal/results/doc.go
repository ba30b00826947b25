// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package results keeps what a tool that plays cases against an operator has played and
// found, in a directory, so that what was interrupted goes on and what several machines
// have played becomes one report. It knows nothing of what a case is.
//
//	finding.go   what every finding has, and its file
//	about.go     what the results of a directory are about
//	merge.go     which cases were to be played, and the directories of several machines as one
//	book.go      the directory: what was played, and what was found
//	lock.go      keeps other runs out of it
//	again.go     goes on in it, or begins from the start
//	result.go    which findings are probably of one mistake
//	report.go    says it: text, HTML
//	scope.go     by what was judged, what was left out, and what the result means therefore
//	junit.go     says it to CI
package results
