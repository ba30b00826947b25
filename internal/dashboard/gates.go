// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"

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
	// active lists the ScheduledRestarts with a restart in progress, which may use a slot of the
	// restart budget. targets maps the resource name of each kind of workload to the workloads of
	// the kind, keyed by namespace and name. Both are nil until they are needed.
	active  []*tidekeeperv1.ScheduledRestart
	targets map[string]map[types.NamespacedName]workload.Object
}

// of returns the current gates (start conditions) of the given ScheduledRestart, or an error if
// they are unknown.
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
	if in.Target, err = g.targetOf(kind, of); err != nil {
		return nil, err
	}
	slots := view.Slots{Of: of, Settings: g.settings}
	for _, other := range g.inProgress() {
		slots.Add(other, s.now)
	}
	gates := view.GatesOf(in, slots.Gate(""))
	return &gates, nil
}

// inProgress lists the ScheduledRestarts in the snapshot that have a restart in progress.
func (g *gateReader) inProgress() []*tidekeeperv1.ScheduledRestart {
	if g.active == nil {
		g.active = []*tidekeeperv1.ScheduledRestart{}
		for _, restart := range g.snapshot.restarts() {
			if restart.Status.Active != nil {
				g.active = append(g.active, restart)
			}
		}
	}
	return g.active
}

// targetOf returns the state of a ScheduledRestart's target workload, or nil if the workload does
// not exist. kind is the kind of the workload.
func (g *gateReader) targetOf(kind *workload.Kind, of *tidekeeperv1.ScheduledRestart) (*workload.State, error) {
	objects, known := g.targets[kind.Resource]
	if !known {
		objects = map[types.NamespacedName]workload.Object{}
		for _, o := range g.snapshot.objects[kind.Resource] {
			if object, ok := o.(workload.Object); ok {
				objects[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = object
			}
		}
		if g.targets == nil {
			g.targets = map[string]map[types.NamespacedName]workload.Object{}
		}
		g.targets[kind.Resource] = objects
	}
	object := objects[types.NamespacedName{Namespace: of.Namespace, Name: of.Spec.TargetRef.Name}]
	if object == nil {
		return nil, nil
	}
	return kind.State(object)
}

// closedText lists the names of a restart's closed gates (start conditions), and explains why each
// is closed. err is the reason why the gates are unknown, or nil.
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
