// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release tests the folder that make release writes as its users receive it: what is
// checked and unpacked comes from the folder RELEASE alone, never from the source.
//
// The folder of the test has the archives for this machine. All platforms are built for a
// release only, as each compiles the libraries again.
package release
