// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command compat is the compatibility gate. It compares the interfaces on which users depend with
// the latest version recorded in test/compat. It fails for each breaking change that the changelog
// does not name. make verify runs it in the root of the repository. With --write, it records a
// version; with --ready, it checks that the source tree can be released as that version.
//
// The files:
//
//	main.go       the command line, and the folders of recorded versions
//	surface.go    the surface (flags, metrics, reasons, JSON fields and so on) and its comparison
//	collect.go    collects the surface of this source tree
//	fields.go     the fields of the JSON that a command prints
//	chart.go      the values of the chart, and their schema
//	constants.go  the string constants of Go files: reasons, events, conditions, annotations, exit codes
//	crd.go        the comparison of two CRDs
//	schema.go     the comparison of two schemas
//	objects.go    the objects that later versions must accept: samples and documented examples
//	ready.go      what a release needs beyond that
//	changelog.go  the breaking changes that the changelog names
package main
