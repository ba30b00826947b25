// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects creates objects for tests.
//
//	objects.go   versions of objects, from YAML
package objects
