// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/internal/maintenance/selection"
)

// maxMessage is the maximum length, in bytes, of the message about a node in the status of a
// NodeMaintenance.
const maxMessage = 256

// Decide returns the next step of a NodeMaintenance that is not being deleted: its new status, and
// the changes to make to nodes.
func Decide(in Input) Output {
	out := Output{Status: *in.Maintenance.Status.DeepCopy()}
	s := &state{Input: in, spec: &in.Maintenance.Spec, status: &out.Status, out: &out}
	ticks, windows, err := selection.Times(s.spec)
	round := &rounds{state: s, ticks: ticks}
	all := s.Selected
	round.leaveOutNewNodes()
	if err == nil && round.begin() {
		s.Selected = all
		round.leaveOutNewNodes()
	}
	round.observe()
	for _, name := range slices.Sorted(maps.Keys(s.status.Nodes)) {
		(&phases{s}).advance(name)
	}
	round.sweep()
	drains := &starter{state: s, windows: windows}
	if err == nil {
		drains.start()
	}
	(&due{state: s, open: drains.open}).mark()
	round.count()
	(&conditions{state: s, waits: drains.waits}).set(err)
	return out
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
