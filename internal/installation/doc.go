// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installation implements the commands that an installation runs in addition to the
// manager. For helm test, check.go checks that a manager can work and that a manager leads. Before
// helm uninstall removes the manager, cleanup.go deletes the node pools.
package installation
