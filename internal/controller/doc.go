// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller defines how a controller is declared. Each capability has a file definition.go
// with its Definition, and internal/manager lists all definitions. The manager, its flags,
// docs/reference, the roles in config/rbac and the chart are derived from these definitions.
package controller
