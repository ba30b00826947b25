// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edits derives edits of a custom resource from the OpenAPI schema of its
// definition: for each property, plausible values, those at and beyond its limits, wrong,
// empty, absent and hostile ones. It decides only: no API server is asked.
//
//	path.go       where a property is, as text and back
//	edit.go       an edit of an object, and the order in which to play edits
//	walk.go       goes through a schema and a sample
//	values.go     values that the type and the bounds of a property suggest
//	hostile.go    texts that are made to break programs
//	maps.go       values for objects and for maps, and keys
//	known.go      values for what many custom resources have: quantities, durations, ports
//	rules.go      values that the CEL rules of a schema name
//	plausible.go  a value that a schema allows
package edits
