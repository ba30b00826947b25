// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command compat is the gate of compatibility: it compares what users depend on with what the
// latest version in test/compat had, and fails for each break that the changelog does not name. Run
// it in the root of the repository; make verify does. With --write it records a version.
//
// The files:
//
//	main.go       the command line, and the folders of versions
//	surface.go    a surface, and its comparison: flags, metrics, reasons, JSON fields and so on
//	collect.go    the surface of this tree
//	fields.go     the fields of the JSON that a command prints
//	constants.go  the string constants of Go files: reasons, events, conditions, annotations, exit codes
//	crd.go        the comparison of two CRDs
//	schema.go     the comparison of two schemas
//	objects.go    the objects that a version accepts: those of the samples and of the pages
//	changelog.go  the breaks that the changelog names
package main
