// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller says what a controller is made of. Each capability defines its
// own in a file controller.go; internal/manager has the list of them. The manager,
// its flags, docs/reference, the roles in config/rbac and the chart all range over
// that list.
package controller
