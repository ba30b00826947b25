// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release tests the folder that make release writes as its users receive it: what is
// checked and unpacked comes from the folder RELEASE alone, never from the source.
//
// Go, helm, krew and dpkg install from it; a sandbox of its archive is the cluster, whose nodes are
// simulated, so that the manager of the archive runs beside it. Nothing is asked of the network.
//
// The folder of the test has the archives for this machine. All platforms are built for a
// release only, as each compiles the libraries again.
package release
