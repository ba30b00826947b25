// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// wordsOf describes the schedule of a ScheduledRestart in words. It returns "" if there is no valid
// schedule.
func wordsOf(of *tidekeeperv1.ScheduledRestart) string {
	if ticks, _, _ := decision.ParseSchedule(&of.Spec); ticks != nil {
		return ticks.Describe()
	}
	return ""
}

// gateReader evaluates the gates (conditions for starting) of ScheduledRestarts from the objects in
// a snapshot.
type gateReader struct {
	snapshot *snapshot
	settings view.Settings
}

// of returns the current gates of the given ScheduledRestart, or an error if they are unknown.
func (g *gateReader) of(of *tidekeeperv1.ScheduledRestart) (*view.Gates, error) {
	s := g.snapshot
	in := decision.Input{Restart: of, Offset: view.OffsetOf(of), Now: s.now}
	in.Freezes = s.freezes()[of.Namespace]
	in.Ticks, in.Windows, in.Invalid = decision.ParseSchedule(&of.Spec)
	// Reading from the snapshot cannot fail.
	_ = in.ReadOrder(func(name string) (*tidekeeperv1.ScheduledRestart, error) {
		for _, other := range s.restarts() {
			if other.Namespace == of.Namespace && other.Name == name {
				return other, nil
			}
		}
		return nil, nil
	})
	kind, err := workload.Get(of.Spec.TargetRef)
	switch {
	case err != nil && decision.Evicts(of):
		return nil, errors.New("only the scale subresource of its target is known, which this page does not read: ask kubectl tide restarts gates")
	case err != nil:
		return nil, err
	}
	if problem := s.problem(kind.Resource); problem != "" {
		return nil, errors.New(problem)
	}
	in.Unserved = s.unserved[kind.Resource]
	if in.Target, err = s.targetOf(kind, of); err != nil {
		return nil, err
	}
	slots := view.Slots{Of: of, Settings: g.settings}
	for _, other := range s.restarts() {
		slots.Add(other, s.now)
	}
	gates := view.GatesOf(in, slots.Gate(""))
	return &gates, nil
}

// closedText lists the names of a restart's closed gates, and explains why each is closed. err is
// the reason why the gates are unknown, or nil.
func closedText(gates *view.Gates, err error) (names, why string) {
	if err != nil {
		return "not known", err.Error()
	}
	var closed, messages []string
	for _, gate := range gates.Gates {
		if !gate.Open {
			closed, messages = append(closed, string(gate.Name)), append(messages, string(gate.Name)+": "+gate.Message)
		}
	}
	return strings.Join(closed, ", "), strings.Join(messages, "; ")
}
