// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// RestartedAt returns the ticks (scheduled times) in a Deployment's pod templates, in order. Each
// template creates a ReplicaSet, so the ReplicaSets are evidence from the control plane that does
// not depend on the manager.
func (c *Cluster) RestartedAt(t testing.TB, d *appsv1.Deployment) []string {
	t.Helper()
	sets := &appsv1.ReplicaSetList{}
	if err := c.List(t.Context(), sets, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, set := range sets.Items {
		if value := set.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation]; value != "" {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// OnceEach checks that each tick was started at most once, and returns a line per problem. A
// started tick has a single history record and a single template, and every template belongs to a
// tick. The oldest records may have been dropped from the history.
func OnceEach(isTick func(time.Time) bool, history []tidekeeperv1.RestartRecord, restartedAt []string) []string {
	var problems []string
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	records := map[string]int{}
	for _, record := range history {
		if record.StartedTime != nil {
			records[clock(record.ScheduledTime.Time)]++
		}
	}
	for tick, n := range records {
		if n > 1 {
			problem("%d records say that the tick %s was started", n, tick)
		}
	}
	for _, record := range history {
		if tick := clock(record.ScheduledTime.Time); record.Outcome == tidekeeperv1.OutcomeSucceeded && !slices.Contains(restartedAt, tick) {
			problem("the history says that the restart for %s succeeded, and no template bears it", tick)
		}
	}
	for i, value := range restartedAt {
		at, err := time.Parse(time.RFC3339, value)
		switch {
		case i > 0 && value == restartedAt[i-1]:
			problem("two templates were restarted for %s", value)
		case err != nil || !isTick(at) || clock(at) != value:
			problem("a template was restarted for %s, which is not a tick", value)
		}
	}
	slices.Sort(problems)
	return problems
}

// AllDecided checks the history of the requested ticks, and returns a line per problem. In addition
// to the checks of [OnceEach], each tick must have exactly one record, and the templates must match
// the records.
func AllDecided(ticks []time.Time, history []tidekeeperv1.RestartRecord, restartedAt []string) []string {
	var problems []string
	asked := func(at time.Time) bool { return slices.ContainsFunc(ticks, at.Equal) }
	for _, tick := range ticks {
		n := 0
		for _, record := range history {
			if record.ScheduledTime.Time.Equal(tick) {
				n++
			}
		}
		if n != 1 {
			problems = append(problems, fmt.Sprintf("%d records say what became of the tick %s, want one", n, clock(tick)))
		}
	}
	for _, record := range history {
		if !asked(record.ScheduledTime.Time) {
			problems = append(problems, fmt.Sprintf("a record names the tick %s, which did not exist", clock(record.ScheduledTime.Time)))
		}
	}
	for _, value := range restartedAt {
		if !slices.ContainsFunc(history, func(r tidekeeperv1.RestartRecord) bool {
			return r.StartedTime != nil && clock(r.ScheduledTime.Time) == value
		}) {
			problems = append(problems, fmt.Sprintf("a template was restarted for %s, and no record says so", value))
		}
	}
	return append(problems, OnceEach(asked, history, restartedAt)...)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
