// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// ColorOf returns the terminal color for a severity.
func ColorOf(s view.Severity) term.Color {
	switch s {
	case view.Good:
		return term.Green
	case view.Warning:
		return term.Yellow
	case view.Bad:
		return term.Red
	default:
		return term.Plain
	}
}
