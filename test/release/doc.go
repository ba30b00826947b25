// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release tests the folder that make release writes, as users receive it: all files that
// are checked and unpacked come from the folder that RELEASE names, never from the source tree.
//
// Go, Helm, krew and dpkg install from the folder. The cluster is a sandbox from the release
// archive. The sandbox's nodes are simulated, so the archive's manager runs as a process next to
// it. No test uses the network.
//
// The tested folder contains archives for this machine's platform only. Archives for all platforms
// are built only for a release, because each platform compiles the libraries again.
package release
