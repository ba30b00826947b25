// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// Horizon is the period covered by a forecast. Drains that would begin later are not simulated.
const Horizon = 366 * 24 * time.Hour

// Node is a node that a forecast takes into account.
type Node struct {
	Name, Zone string
	// Group is the index of the node's pool in spec.nodes.pools. All nodes of a group are
	// maintained before the nodes of the next group.
	Group int
	// Unavailable is true if the node is unavailable before its drain begins. The node then counts
	// towards the limits from the start.
	Unavailable bool
}

// RunningNode is a node in maintenance.
type RunningNode struct {
	Node
	// Start is the time at which the drain of the node began.
	Start time.Time
}

// Input is the state from which a forecast is computed.
type Input struct {
	Now time.Time
	// From is the time at which the round begins. It is the zero time if the round has begun.
	From time.Time
	// Running lists the nodes that are being maintained. Waiting lists the nodes whose drain has
	// not begun, in the order in which their drains will begin.
	Running []RunningNode
	Waiting []Node
	// Others lists unavailable nodes that count towards the limits, but that are no longer to be
	// maintained in this round. They are assumed to stay unavailable.
	Others []Node
	// Limit is the maximum number of nodes that may be unavailable at a time. ZoneLimit is the
	// maximum number in each zone; 0 means no limit.
	Limit, ZoneLimit int
	// PerNode is the time from the beginning of a drain to the end of the node's maintenance. It is
	// 0 if the time is unknown.
	PerNode time.Duration
	// Windows are the times at which a drain may begin, except while a freeze is in force.
	Windows schedule.Windows
	Freezes []period.Period
	// Next is the time at which the schedule begins the next round; zero if there is none.
	Next time.Time
}

// Forecast is the expected course of a round.
type Forecast struct {
	// Left is the number of nodes of the round whose maintenance is not complete.
	Left int `json:"left"`
	// Overdue is the number of nodes whose maintenance takes longer than expected. Their
	// maintenance is assumed to end now.
	Overdue int `json:"overdue,omitempty"`
	// NextDrain is the time at which the next drain begins. It is nil if no further drain begins,
	// or if the time is unknown.
	NextDrain *time.Time `json:"nextDrain,omitempty"`
	// End is the time at which the round ends, or nil if it is unknown.
	End *time.Time `json:"end,omitempty"`
	// Windows lists the windows in which drains begin.
	Windows []Window `json:"windows,omitempty"`
	// NextRound is the time at which the schedule begins the next round. Late is true if this round
	// has not ended by then.
	NextRound *time.Time `json:"nextRound,omitempty"`
	Late      bool       `json:"late"`
	// NotStarted is the number of nodes whose drain does not begin within the forecast's [Horizon].
	NotStarted int `json:"notStarted,omitempty"`
	// LimitUsedUp is true if the limit of unavailable nodes is used up by nodes that are
	// unavailable for other reasons than this maintenance, so that the drains of the nodes in
	// NotStarted cannot begin.
	LimitUsedUp bool `json:"limitUsedUp,omitempty"`
}

// Window is a time window in which drains begin.
type Window struct {
	Opens  time.Time `json:"opens"`
	Closes time.Time `json:"closes"`
	// Nodes is the number of nodes whose drain begins in the window.
	Nodes int `json:"nodes"`
}

// PerNode returns the median duration of the maintenance of completed nodes, measured from the
// start of the drain, and the number of these nodes. The duration is at least a second, or 0 if no
// node is complete.
func PerNode(nodes map[string]tidekeeperv1.NodeProgress) (median time.Duration, measured int) {
	var took []time.Duration
	for _, n := range nodes {
		if n.Phase == tidekeeperv1.NodeDone {
			took = append(took, max(time.Second, n.Since.Sub(n.StartTime.Time)))
		}
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], len(took)
}
