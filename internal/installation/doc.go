// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installation has what an installation runs beside the manager: check.go
// checks that a manager can do its work and is active, which helm test runs, and
// cleanup.go deletes the node pools before helm uninstall removes the manager.
package installation
