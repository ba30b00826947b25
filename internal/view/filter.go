// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import "strings"

// Matches reports whether a name has a text in it, in upper or lower case: as --name of the commands
// and the filter of the pages mean it.
func Matches(text, name string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}
