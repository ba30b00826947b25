// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// freezeRow is a table row that shows a Freeze that has not ended.
type freezeRow struct {
	view.Freeze
	State       string
	Is          view.Severity
	Begin, End  shownTime
	HeldBackNow string
	Actions     []action
}

// freezeRows returns a row for each Freeze that has not ended. Even if the dashboard is limited to
// a namespace, it includes the Freezes of other namespaces, because every Freeze prevents pools
// from adding NoExecute taints to nodes.
func freezeRows(s *snapshot, local *time.Location, b *buttons) []freezeRow {
	var rows []freezeRow
	for _, f := range view.FreezesOf(listOf[*tidekeeperv1.Freeze](s, kindFreezes), s.now) {
		row := freezeRow{Freeze: f, State: "coming", End: timeText(f.Until, local, term.Coming(f.Until, s.now, local)), Begin: moment(f.From, s.now, local), Actions: b.thaw(&f)}
		if f.InForce {
			row.State, row.Is = "in force", view.Warning
		}
		row.HeldBackNow = heldBackText(f.HeldBack)
		rows = append(rows, row)
	}
	return rows
}

// heldBackText describes the effect of a Freeze: the numbers of waiting restarts, of missed ticks
// (scheduled times of restarts), and of nodes whose taint is delayed. It returns "nothing" if all
// numbers are 0.
func heldBackText(h tidekeeperv1.HeldBack) string {
	var parts []string
	for _, part := range []struct {
		n    int32
		noun string
		verb string
	}{{h.Restarts, "restart", " waiting"}, {h.MissedTicks, "tick", " missed"}, {h.Nodes, "node", " without a taint"}} {
		if part.n > 0 {
			parts = append(parts, plural(int(part.n), part.noun)+part.verb)
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
