// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects makes objects for tests.
//
//	objects.go   versions of objects, from YAML
package objects
