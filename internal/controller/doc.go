// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller defines the declaration of a controller. Each capability has its own
// Definition in a file definition.go; internal/manager has the list of them. The manager, its
// flags, docs/reference, the roles in config/rbac and the chart all range over that list.
package controller
