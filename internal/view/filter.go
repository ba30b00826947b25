// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import "strings"

// Matches reports whether a name contains a string, ignoring case. It implements the flag --name of
// the commands, and the filter of the dashboard.
func Matches(text, name string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}
