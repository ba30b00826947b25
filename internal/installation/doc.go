// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installation implements the commands that an installation runs beside the manager:
// check.go checks that a manager can work and is active, for helm test, and cleanup.go deletes
// the node pools before helm uninstall removes the manager.
package installation
