// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"time"
)

// note is an action of explore or fuzz itself, such as a step or a fault, for the timeline.
type note struct {
	Time time.Time
	Text string
}

// Notes collects the actions of explore or fuzz itself in a run.
type Notes struct{ All []note }

// Add records an action with the current time.
func (n *Notes) Add(format string, args ...any) {
	n.All = append(n.All, note{time.Now(), fmt.Sprintf(format, args...)})
}
