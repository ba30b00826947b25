// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package matrix plays scenarios from the life of the manager, each first
// undisturbed, to learn what is written and where it ends. Then again for each of
// its writes and each fault that can be done to a write, and for each event that
// was watched and each fault of events. The end must be the same: all objects, but
// for names and times; a Deployment's revisions among them, so that no restart is
// done twice; and what somebody else has put there. And it must not take many
// more writes.
//
// By default a slice is played, FAULTS=all plays all. SCENARIO and FAULT choose
// one by its name.
package matrix

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &cluster, "--nodes=0")) }

// How many writes more than undisturbed a run may take, and how many of its
// writes may be refused. While a watch stands still, the manager does not see by
// what it was overtaken and tries again, less and less often.
const (
	extraWrites   = 8
	refusedWrites = 16
)

// checkChoice fails the test if SCENARIO or FAULT names none that there is: it would
// play nothing, and pass.
func checkChoice(t *testing.T) {
	t.Helper()
	var scenarioNames, faultNames []string
	for _, s := range scenarios {
		scenarioNames = append(scenarioNames, s.name)
	}
	for _, f := range slices.Concat(onWrites, onEvents) {
		faultNames = append(faultNames, f.name)
	}
	for variable, names := range map[string][]string{"SCENARIO": scenarioNames, "FAULT": faultNames} {
		if chosen := os.Getenv(variable); chosen != "" && !slices.Contains(names, chosen) {
			t.Fatalf("%s=%q: must be one of %q", variable, chosen, names)
		}
	}
}

func TestMatrix(t *testing.T) {
	checkChoice(t)
	queue := make(chan int)
	table := make([]row, len(scenarios))
	var wait sync.WaitGroup
	for i := range lanes() {
		c := &cluster
		if i > 0 {
			c = framework.Start(t, "--nodes=0")
		}
		wait.Go(func() {
			failures := try(t, func(lt testing.TB) {
				l := newLane(lt, c)
				for i := range queue {
					table[i] = playAll(t, l, scenarios[i], i)
					t.Logf("%s: %d of %d have passed", scenarios[i].name, table[i].passed, table[i].run)
				}
				l.stop()
			})
			for _, failure := range failures {
				t.Error(failure)
			}
			for range queue {
				t.Error("a scenario was not played")
			}
		})
	}
	for i, s := range scenarios {
		if only := os.Getenv("SCENARIO"); only == "" || only == s.name {
			queue <- i
		}
	}
	close(queue)
	wait.Wait()
	show(t, table)
}

// lanes is how many clusters the scenarios are spread over.
func lanes() int {
	if framework.AllFaults() {
		return 3
	}
	return 1
}

// row is what came of one scenario.
type row struct {
	scenario                      string
	writes, events                int
	planned, run, reached, passed int
	mostMore, mostRefused         int
	took                          time.Duration
}

// playAll plays a scenario undisturbed and with its faults.
func playAll(t *testing.T, l *lane, s scenario, number int) row {
	begun := time.Now()
	r := row{scenario: s.name}
	var undisturbed outcome
	if failures := try(t, func(t testing.TB) { undisturbed = l.play(t, s, nil, nil) }); len(failures) > 0 {
		t.Errorf("%s, undisturbed:\n%s", s.name, strings.Join(failures, "\n"))
		return r
	}
	r.writes = len(undisturbed.writes)
	faults := faultsOf(&undisturbed)
	for _, resource := range resources {
		r.events += undisturbed.events[resource]
	}
	r.planned = len(faults)
	for _, f := range choose(faults, number) {
		var o outcome
		failures := try(t, func(t testing.TB) {
			o = l.play(t, s, &f, &undisturbed)
			accepted, refused := o.counts()
			usual, _ := undisturbed.counts()
			r.mostMore, r.mostRefused = max(r.mostMore, accepted-usual), max(r.mostRefused, refused)
			if accepted > usual+extraWrites || refused > refusedWrites {
				t.Errorf("%d writes, %d more than undisturbed, and %d refused:", accepted, accepted-usual, refused)
				for _, write := range o.writes {
					t.Log(describe(write))
				}
			}
		})
		r.run++
		if o.reached {
			r.reached++
		}
		if len(failures) == 0 {
			r.passed++
		} else {
			t.Errorf("%s, %s:\n%s", s.name, f.where(&undisturbed), strings.Join(failures, "\n"))
		}
		if f.fresh || len(failures) > 0 {
			l.stop()
		}
	}
	r.took = time.Since(begun)
	return r
}

// faultsOf are all faults that can be done to a run.
func faultsOf(undisturbed *outcome) []fault {
	var faults []fault
	for at := range undisturbed.writes {
		for _, f := range onWrites {
			f.at = at + 1
			faults = append(faults, f)
		}
	}
	for _, resource := range resources {
		for at := range undisturbed.events[resource] {
			for _, f := range onEvents {
				f.resource, f.at = resource, at+1
				faults = append(faults, f)
			}
		}
	}
	return faults
}

// slice is how many of a scenario's faults are played by default.
const slice = 1

// choose returns what is played: all, or a few that differ from scenario to
// scenario, so that together they are of many kinds.
func choose(faults []fault, number int) []fault {
	if only := os.Getenv("FAULT"); only != "" {
		return slices.DeleteFunc(faults, func(f fault) bool { return f.name != only })
	}
	if framework.AllFaults() || len(faults) <= slice {
		return faults
	}
	var chosen []fault
	for i := range slice {
		// The stride has no factor in common with the numbers of kinds.
		chosen = append(chosen, faults[(number+i*len(scenarios))*17%len(faults)])
	}
	return chosen
}

// where says what was done where, for people.
func (f *fault) where(undisturbed *outcome) string {
	if f.resource != "" {
		return fmt.Sprintf("event %d of %s: %s", f.at, f.resource, f.name)
	}
	return fmt.Sprintf("write %d (%s): %s", f.at, describe(undisturbed.writes[f.at-1]), f.name)
}

// show prints what was done.
func show(t *testing.T, table []row) {
	lines := []string{fmt.Sprintf("%-38s %6s %6s %7s %5s %7s %6s %5s %7s %6s", "SCENARIO", "WRITES", "EVENTS", "FAULTS", "RUN", "REACHED", "PASSED", "MORE", "REFUSED", "TOOK")}
	var sum row
	line := func(r row) string {
		return fmt.Sprintf("%-38s %6d %6d %7d %5d %7d %6d %5d %7d %6s", r.scenario, r.writes, r.events, r.planned, r.run, r.reached, r.passed, r.mostMore, r.mostRefused, r.took.Round(time.Second))
	}
	for _, r := range table {
		if r.scenario == "" {
			continue
		}
		sum.scenario = fmt.Sprintf("%d scenarios", len(lines))
		lines = append(lines, line(r))
		sum.writes, sum.events, sum.planned = sum.writes+r.writes, sum.events+r.events, sum.planned+r.planned
		sum.run, sum.reached, sum.passed = sum.run+r.run, sum.reached+r.reached, sum.passed+r.passed
		sum.mostMore, sum.mostRefused, sum.took = max(sum.mostMore, r.mostMore), max(sum.mostRefused, r.mostRefused), sum.took+r.took
	}
	lines = append(lines, line(sum))
	t.Log("\n" + strings.Join(lines, "\n"))
	if sum.run > 0 && sum.reached == 0 {
		t.Error("no fault was reached: nothing was tested")
	}
	if slices.ContainsFunc(table, func(r row) bool { return r.passed != r.run }) && !t.Failed() {
		t.Error("not all have passed")
	}
}
