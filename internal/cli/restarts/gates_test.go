// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// TestGatesOnANarrowScreen checks that complete messages are shown on a narrow screen, in lines
// below their gate. A message contains the time at which the gate opens.
func TestGatesOnANarrowScreen(t *testing.T) {
	table := gatesTable([]decision.Gate{
		{Name: decision.GateTarget, Open: true, Message: "Deployment web exists"},
		{Name: decision.GateWindow, Reason: "WindowClosed", Message: "no window is open; the next one opens at 2026-11-27T03:00:00Z"},
	})
	screen := term.Screen{Terminal: true, Width: 40}
	want := []string{
		"GATE     STATE    REASON",
		"Target   open",
		"  Deployment web exists",
		"Window   closed   WindowClosed",
		"  no window is open; the next one opens",
		"  at 2026-11-27T03:00:00Z",
	}
	if diff := cmp.Diff(want, lines(t, wrapMessages(table, screen.Width), screen)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
