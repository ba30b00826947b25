// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package matrix plays scenarios from the life of the manager. Each is played first
// undisturbed, to learn its writes and its final state, and then again for each of its
// writes with each fault of writes, and for each event of a watch with each fault of
// events. The final state must be the same: all objects, except for names and times,
// including the revisions of Deployments, so that no restart is done twice, and
// including what another client wrote. And the run must not take many more writes.
//
// By default a fault of some scenarios is played, with FAULTS=sample a fault of each, and
// with FAULTS=all everything. SCENARIO and FAULT select one by name, or several,
// separated by semicolons.
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

func TestMain(m *testing.M) {
	framework.UseRaceBuilds()
	os.Exit(framework.Main(m, &cluster, "--nodes=0"))
}

// checkChoice fails the test if SCENARIO or FAULT has an unknown name: the test would
// play nothing and pass.
func checkChoice(t *testing.T) {
	t.Helper()
	var scenarioNames, faultNames []string
	for _, s := range scenarios {
		scenarioNames = append(scenarioNames, s.name)
	}
	for _, f := range allKinds() {
		faultNames = append(faultNames, f.name)
	}
	for variable, names := range map[string][]string{"SCENARIO": scenarioNames, "FAULT": faultNames} {
		for _, chosen := range chosen(variable) {
			if !slices.Contains(names, chosen) {
				t.Fatalf("%s=%q: must be one of %q", variable, chosen, names)
			}
		}
	}
}

// chosen returns the names in an environment variable, none if it is not set.
func chosen(variable string) []string {
	return strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ';' })
}

func TestMatrix(t *testing.T) {
	checkChoice(t)
	only := chosen("SCENARIO")
	queue := make(chan int)
	table := make([]row, len(scenarios))
	var wait sync.WaitGroup
	for i := range testbeds() {
		c := &cluster
		if i > 0 {
			c = framework.Start(t, "--nodes=0")
		}
		wait.Go(func() {
			failures, _ := try(t, func(lt testing.TB) {
				l := newTestbed(lt, c)
				for i := range queue {
					table[i] = playAll(t, l, scenarios[i], i)
					t.Log(table[i])
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
	played := 0
	for i, s := range scenarios {
		if slices.Contains(only, s.name) || len(only) == 0 && (s.often || framework.AllFaults() || framework.SampleFaults()) {
			queue <- i
			played++
		}
	}
	close(queue)
	wait.Wait()
	show(t, table)
	t.Logf("played %d of %d scenarios; FAULTS=sample plays a fault of each", played, len(scenarios))
}

// testbeds returns the number of clusters that the scenarios are distributed over.
func testbeds() int {
	if framework.AllFaults() {
		return 3
	}
	return 1
}

// row is the result of one scenario.
type row struct {
	scenario                      string
	writes, events                int
	planned, run, reached, passed int
	mostMore, mostRefused         int
	took                          time.Duration
	failed                        []string
}

// String returns the row as a line of a Markdown table.
func (r row) String() string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d | %s |", r.scenario, r.writes, r.events, r.planned, r.run, r.reached, r.passed, r.mostMore, r.mostRefused, r.took.Round(time.Second))
}

// playAll plays a scenario undisturbed and with its faults.
func playAll(t *testing.T, l *testbed, s scenario, number int) row {
	begun := time.Now()
	r := row{scenario: s.name}
	var undisturbed outcome
	// A watch is renewed after some minutes, and then the number of its events is
	// unknown.
	l.stop()
	if failures, logs := try(t, func(t testing.TB) { undisturbed = l.play(t, s, nil, nil) }); len(failures) > 0 {
		t.Errorf("%s, undisturbed:\n%s", s.name, strings.Join(slices.Concat(failures, logs), "\n"))
		return r
	}
	r.writes = len(undisturbed.writes)
	faults := faultsOf(s, &undisturbed, number)
	for _, resource := range resources {
		r.events += undisturbed.events[resource]
	}
	r.planned = len(faults)
	for _, f := range choose(faults, number) {
		var o outcome
		failures, logs := try(t, func(t testing.TB) {
			o = l.play(t, s, &f, &undisturbed)
			more, refused, broken := excess(o.counts, undisturbed.counts, o.took)
			r.mostMore, r.mostRefused = max(r.mostMore, more), max(r.mostRefused, refused)
			for _, line := range broken {
				t.Error(line)
			}
			if len(broken) > 0 {
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
			t.Errorf("%s, %s:\n%s", s.name, f.where(&undisturbed), strings.Join(slices.Concat(failures, logs), "\n"))
			r.failed = append(r.failed, f.where(&undisturbed))
		}
		if f.fresh || f.leaders || len(failures) > 0 {
			l.stop()
		}
	}
	r.took = time.Since(begun)
	return r
}

// slice is the number of faults per scenario that are played by default.
const slice = 1

// choose returns the faults to play: all, or a few that differ between scenarios, so
// that together they cover many kinds.
func choose(faults []fault, number int) []fault {
	if only := chosen("FAULT"); len(only) > 0 {
		return slices.DeleteFunc(faults, func(f fault) bool { return !slices.Contains(only, f.name) })
	}
	if framework.AllFaults() || len(faults) <= slice {
		return faults
	}
	var few []fault
	for i := range slice {
		// The stride has no common factor with the numbers of kinds.
		few = append(few, faults[(number+i*len(scenarios))*17%len(faults)])
	}
	return few
}

// show prints the results as a table for docs/reliability.md, and the failures.
func show(t *testing.T, table []row) {
	lines := []string{
		"| scenario | writes | events | planned | run | reached | passed | more | refused | took |",
		"|---|---|---|---|---|---|---|---|---|---|",
	}
	var sum row
	var failed []string
	for _, r := range table {
		if r.scenario == "" {
			continue
		}
		sum.scenario = fmt.Sprintf("%d scenarios", len(lines)-1)
		lines = append(lines, r.String())
		for _, where := range r.failed {
			failed = append(failed, r.scenario+", "+where)
		}
		sum.writes, sum.events, sum.planned = sum.writes+r.writes, sum.events+r.events, sum.planned+r.planned
		sum.run, sum.reached, sum.passed = sum.run+r.run, sum.reached+r.reached, sum.passed+r.passed
		sum.mostMore, sum.mostRefused, sum.took = max(sum.mostMore, r.mostMore), max(sum.mostRefused, r.mostRefused), sum.took+r.took
	}
	lines = append(lines, sum.String())
	t.Log("\n" + strings.Join(lines, "\n"))
	if len(failed) > 0 {
		t.Log("failed:\n" + strings.Join(failed, "\n"))
	}
	if sum.run > 0 && sum.reached == 0 {
		t.Error("no fault was reached: nothing was tested")
	}
	if slices.ContainsFunc(table, func(r row) bool { return r.passed != r.run }) && !t.Failed() {
		t.Error("some runs failed")
	}
}
