// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edits derives edits of a custom resource from the OpenAPI schema in its
// CustomResourceDefinition. For each property there are plausible values, values at and beyond
// the limits, and wrong, empty, absent and hostile values. The package only computes edits, and
// sends no requests.
//
//	path.go       the path of a property, and its string form
//	edit.go       an edit of an object, and the order in which edits are tested
//	walk.go       traverses a schema and a sample
//	values.go     values suggested by the type and the bounds of a property
//	hostile.go    strings that are designed to break programs
//	maps.go       values for objects and maps, and map keys
//	known.go      values for common properties: quantities, durations, ports
//	rules.go      values that occur in the CEL rules of a schema
//	plausible.go  a value that a schema allows
package edits
