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

// Horizon is the time that a forecast looks ahead. Drains that would begin later are not simulated.
const Horizon = 366 * 24 * time.Hour

// Node is a node of the round.
type Node struct {
	Name, Zone string
	// Group is the position of the node's pool in the spec. All nodes of a group are maintained
	// before those of the next group.
	Group int
	// Unavailable is true if the node is unavailable before its drain begins. It then counts towards
	// the limits all the time.
	Unavailable bool
}

// RunningNode is a node whose drain has begun, and whose maintenance has not ended.
type RunningNode struct {
	Node
	// Start is the time at which its drain began.
	Start time.Time
}

// Input is the state from which a forecast is computed.
type Input struct {
	Now time.Time
	// From is the time at which the round begins. It is the zero time if the round has begun.
	From time.Time
	// Running lists the nodes that are being maintained. Waiting lists the nodes whose drain has not
	// begun, in the order in which their drains will begin.
	Running []RunningNode
	Waiting []Node
	// Others lists unavailable nodes that count towards the limits, and that this round does not
	// maintain any more. They are assumed to stay unavailable.
	Others []Node
	// Limit is the greatest number of nodes that may be unavailable at a time. ZoneLimit is the same
	// for each zone; 0 means no limit.
	Limit, ZoneLimit int
	// PerNode is the time from the beginning of a drain to the end of the node's maintenance. It is 0
	// if it is unknown.
	PerNode time.Duration
	// Windows are the times at which a drain may begin, except while a freeze is in force.
	Windows schedule.Windows
	Freezes []period.Period
	// Next is the time at which the schedule begins the next round; zero if there is none.
	Next time.Time
}

// Forecast is the expected course of a round.
type Forecast struct {
	// Left is the number of nodes whose maintenance has not ended.
	Left int `json:"left"`
	// Overdue is the number of running nodes that have taken longer than expected. They are assumed to
	// be done now.
	Overdue int `json:"overdue,omitempty"`
	// NextDrain is the time at which the next drain begins. It is nil if no further drain begins, or
	// if the time is unknown.
	NextDrain *time.Time `json:"nextDrain,omitempty"`
	// End is the time at which the round ends. It is nil if the time is unknown.
	End *time.Time `json:"end,omitempty"`
	// Windows lists the windows in which drains begin.
	Windows []Window `json:"windows,omitempty"`
	// NextRound is the time at which the schedule begins the next round. Late is true if this round
	// has not ended by then.
	NextRound *time.Time `json:"nextRound,omitempty"`
	Late      bool       `json:"late"`
	// NotStarted is the number of nodes whose drain does not begin within the horizon.
	NotStarted int `json:"notStarted,omitempty"`
	// LimitUsedUp is true if nodes that are unavailable for other reasons leave no room for the
	// nodes in NotStarted.
	LimitUsedUp bool `json:"limitUsedUp,omitempty"`
}

// Window is a time during which drains begin.
type Window struct {
	Opens  time.Time `json:"opens"`
	Closes time.Time `json:"closes"`
	// Nodes is the number of nodes whose drain begins in the window.
	Nodes int `json:"nodes"`
}

// PerNode returns the median time that the nodes that are done took, from the beginning of their
// drain, and the number of these nodes. The time is at least a second; 0 if no node is done.
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
