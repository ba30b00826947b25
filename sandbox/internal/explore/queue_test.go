// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// TestFill checks that faults with a result are not queued again, unless they could not be judged
// or their findings are unconfirmed.
func TestFill(t *testing.T) {
	var all []faults.Planned
	for step := range 4 {
		all = append(all, faults.Planned{Fault: faults.Fault{Kind: "Restart", Step: step}})
	}
	played := []results.Played{{ID: all[0].ID()}, {ID: all[1].ID(), Error: "etcd crashed"}, {ID: all[2].ID(), Found: true, Unsure: true}}
	q := &queue{book: &results.Book[*Finding]{Result: &results.Result[*Finding]{Played: played}}, history: faults.NewHistory()}
	q.fill(all)
	var left []int
	for _, f := range q.short {
		left = append(left, f.Step)
	}
	if want := []int{1, 2, 3}; !slices.Equal(left, want) {
		t.Errorf("left are those of the steps %v, want %v", left, want)
	}
}

// TestOneAtATime checks that faults are injected one after the other if operators share the
// machine's network, whatever --jobs says, and that this includes faults that wait for minutes.
func TestOneAtATime(t *testing.T) {
	about := results.About{Command: []string{"true"}}
	book, err := Tool.Open(t.TempDir(), about)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	var playing, played atomic.Int32
	w := &workload.Workload{HostNetwork: true, Steps: []workload.Step{{Name: "a"}}}
	q := &queue{
		explorer: &Explorer{Testbeds: &testbed.Maker{Setup: lab.Setup{Workload: w}}, Workload: w}, plan: Plan{Plan: results.Plan{Progress: io.Discard, Jobs: 3}}, book: book, over: t.Context(), history: faults.NewHistory(),
		play: func(context.Context, string, *faults.Fault, setting) (*judge.Outcome, error) {
			defer playing.Add(-1)
			if playing.Add(1) > 1 {
				t.Error("two operators run at once")
			}
			for range 100 {
				runtime.Gosched() // Let other lanes begin.
			}
			played.Add(1)
			return &judge.Outcome{Reached: true}, nil
		},
	}
	var all []faults.Planned
	for step := range 20 {
		all = append(all, faults.Planned{Fault: faults.Fault{Kind: []faults.Kind{"Restart", "FreezeLong"}[step%2], Step: step, Resource: "pods"}})
	}
	q.fill(all)
	if err := q.run(t.Context()); err != nil || int(played.Load()) != len(all) {
		t.Errorf("%d of %d are injected, %v", played.Load(), len(all), err)
	}
}

// TestEarlierFindingsComeFirst checks that the faults of findings with earlier inputs are injected
// before more promising faults.
func TestEarlierFindingsComeFirst(t *testing.T) {
	var all []faults.Planned
	for step := range 4 {
		all = append(all, faults.Planned{Fault: faults.Fault{Kind: "Restart", Step: step}, Score: 10 - step})
	}
	book := &results.Book[*Finding]{Result: &results.Result[*Finding]{}, Again: []*Finding{{ID: all[2].ID()}, {ID: all[3].ID()}}}
	q := &queue{book: book, over: t.Context(), history: faults.NewHistory()}
	q.fill(all)
	var got []int
	for f, ok := q.take(false); ok; f, ok = q.take(false) {
		got = append(got, f.Step)
	}
	if want := []int{2, 3, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("those of the steps %v are injected, want %v", got, want)
	}
}

// TestSecondTime checks that a finding counts as reproduced if the second run reaches the fault and
// shows the same problem. Finding.Second must describe any other result.
func TestSecondTime(t *testing.T) {
	missing := judge.Problem{Oracle: judge.OtherState, Lines: []string{"secrets default/receipt-1: it is missing", "configmaps default/bread: data.state is new, not done"}}
	other := judge.Problem{Oracle: judge.OtherState, Lines: []string{"configmaps default/cake: data.state is new, not done"}}
	restless := judge.Problem{Oracle: judge.NotAtRest, Lines: []string{"it does not come to rest: the operator's update configmaps default/bread"}}
	turns := func(verb string, times int) judge.Problem {
		return judge.Problem{Oracle: judge.NotAtRest, Lines: []string{fmt.Sprintf("it does not come to rest: the operator's %s configmaps default/restless, %d times in the last 10s; the last writes are", verb, times)}}
	}
	for _, tc := range []struct {
		name string
		// before is the first run's problem, if it is not missing. again lists the second run's
		// problems.
		before  judge.Problem
		again   []judge.Problem
		reached bool
		err     error
		same    bool
		second  string
	}{
		{name: "the same", again: []judge.Problem{missing}, reached: true, same: true},
		{name: "some of the same", again: []judge.Problem{restless, {Oracle: judge.OtherState, Lines: []string{missing.Lines[1]}}}, reached: true, same: true},
		{name: "another object", again: []judge.Problem{other}, reached: true, second: "it was other state: configmaps default/cake"},
		{name: "something else", again: []judge.Problem{restless}, reached: true, second: "it was not at rest"},
		{name: "the same, and the fault is not reached", again: []judge.Problem{missing}, second: "the fault was not reached, and yet other state"},
		{name: "the same object with another verb", again: []judge.Problem{turns("delete", 25)}, before: turns("create", 24), reached: true, same: true},
		{name: "another restless object", again: []judge.Problem{turns("create", 25)}, before: restless, reached: true, second: "it was not at rest"},
		{name: "not reached", second: "the fault was not reached"},
		{name: "nothing", reached: true, second: "all was well"},
		{name: "an error", err: errors.New("etcd crashed\nand more"), second: "it could not be judged: etcd crashed"},
		{name: "what is certain", again: []judge.Problem{{Oracle: judge.Failed, Lines: []string{"panic: oh"}}}, reached: true, same: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := &queue{explorer: &Explorer{Testbeds: &testbed.Maker{}, Workload: &workload.Workload{Steps: []workload.Step{{Name: "a"}}}}}
			fault := &faults.Fault{Kind: "CrashAfter", Step: 1, Until: 1}
			before := tc.before
			if before.Oracle == "" {
				before = missing
			}
			found := q.explorer.subject().newFinding(fault, &judge.Outcome{Problems: []judge.Problem{before}}, nil)
			var again *judge.Outcome
			if tc.err == nil {
				again = &judge.Outcome{Problems: tc.again, Reached: tc.reached}
			}
			found = q.secondTime(found, again, tc.err)
			if found.Confirmed() != tc.same || !strings.HasPrefix(found.Second, tc.second) || (tc.second == "") != (found.Second == "") || found.Tries != 1 {
				t.Errorf("found again: %t, %q, want %t, %q", found.Confirmed(), found.Second, tc.same, tc.second)
			}
		})
	}
}

// TestPlayAgain checks that a finding's fault is repeated until a run shows the same problem, or
// reaches the fault without a problem. A run with another problem decides nothing: on a busy
// machine, an operator that was killed may not resume its watches in time.
func TestPlayAgain(t *testing.T) {
	missing := judge.Problem{Oracle: judge.OtherState, Lines: []string{"secrets default/receipt-1: it is missing"}}
	slow := judge.Problem{Oracle: judge.NotReached, Lines: []string{"the operator does not watch [secrets] any more"}}
	missed, well := judge.Outcome{}, judge.Outcome{Reached: true}
	same := judge.Outcome{Reached: true, Problems: []judge.Problem{missing}}
	other := judge.Outcome{Reached: true, Problems: []judge.Problem{slow}}
	without := judge.Outcome{Problems: []judge.Problem{missing}}
	panics := judge.Outcome{Problems: []judge.Problem{{Oracle: judge.Failed, Lines: []string{"panic: oh"}}}}
	for _, tc := range []struct {
		name  string
		runs  []judge.Outcome
		fails int // number of the run that returns an error, counted from 1
		want  int // expected number of runs
	}{
		{name: "all is well", runs: []judge.Outcome{well}, want: 1},
		{name: "the same problem", runs: []judge.Outcome{same}, want: 1},
		{name: "reached at last", runs: []judge.Outcome{missed, missed, well}, want: 3},
		{name: "never reached", runs: []judge.Outcome{missed, missed, missed, missed}, want: 3},
		{name: "another problem, then the same", runs: []judge.Outcome{other, same}, want: 2},
		{name: "another problem, then none", runs: []judge.Outcome{other, well}, want: 2},
		{name: "only other problems", runs: []judge.Outcome{other, other, other, other}, want: 3},
		{name: "the same problem without the fault", runs: []judge.Outcome{without, same}, want: 2},
		{name: "a certain problem", runs: []judge.Outcome{missed, panics}, want: 2},
		{name: "not judged", runs: []judge.Outcome{missed, missed}, fails: 2, want: 2},
	} {
		played := 0
		q := &queue{over: t.Context(), play: func(context.Context, string, *faults.Fault, setting) (*judge.Outcome, error) {
			if played++; played == tc.fails {
				return nil, errors.New("etcd crashed")
			}
			return &tc.runs[played-1], nil
		}}
		again, err := q.playAgain("1", &Finding{Fault: &faults.Fault{}, Problems: []judge.Problem{missing}})
		if played != tc.want || (err != nil) != (tc.fails > 0) || err == nil && again != &tc.runs[played-1] {
			t.Errorf("%s: %d runs, %v; want %d", tc.name, played, err, tc.want)
		}
	}
}

// TestControl checks that a confirmed finding loses the numbers of created and deleted objects that
// differ from the baseline also without a fault, and that these are not counted from then on.
func TestControl(t *testing.T) {
	const key, other = "secrets default/receipt-*", "secrets default/bill-*"
	counts := judge.Problem{Oracle: judge.OtherCounts, Lines: []string{key + ": created 5 times, not 6 times", other + ": created twice, not once"}}
	created := func(receipts, bills int) (all []observe.Version) {
		for prefix, number := range map[string]int{"receipt-": receipts, "bill-": bills} {
			for i := range number {
				o := &unstructured.Unstructured{Object: map[string]any{}}
				o.SetNamespace("default")
				o.SetGenerateName(prefix)
				o.SetName(fmt.Sprint(prefix, i))
				o.SetUID(types.UID(o.GetName()))
				all = append(all, observe.Version{Resource: "secrets", Type: watch.Added, Object: o})
			}
		}
		return all
	}
	for _, tc := range []struct {
		name            string
		receipts, bills int // number of objects that the run without a fault creates
		repeated        int
		err             error
		want            []string
	}{
		{name: "as in the baseline", receipts: 6, bills: 1, repeated: 1, want: counts.Lines},
		{name: "one number by chance", receipts: 5, bills: 1, repeated: 1, want: counts.Lines[1:]},
		{name: "both by chance", receipts: 7, bills: 2, repeated: 1},
		{name: "not confirmed", receipts: 7, bills: 2, want: counts.Lines},
		{name: "an error", receipts: 7, bills: 2, repeated: 1, err: errors.New("etcd crashed"), want: counts.Lines},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := &baseline.Baseline{Uncounted: map[string]bool{}}
			base.Counts[0] = baseline.Counts{Created: map[string]int{key: 6, other: 1}}
			base.Counts[1] = base.Counts[0]
			q := &queue{base: base, over: t.Context(), plan: Plan{Plan: results.Plan{Progress: io.Discard}}}
			q.play = func(_ context.Context, _ string, f *faults.Fault, _ setting) (*judge.Outcome, error) {
				if f != nil {
					t.Errorf("played with %v", f)
				}
				o := &judge.Outcome{}
				o.Versions = created(tc.receipts, tc.bills)
				return o, tc.err
			}
			found := &Finding{Problems: []judge.Problem{{Oracle: counts.Oracle, Lines: slices.Clone(counts.Lines)}}}
			found.Repeated = tc.repeated
			var left []string
			if q.control("1", found) {
				left = found.Problems[0].Lines
			}
			if !slices.Equal(left, tc.want) {
				t.Errorf("left are %q, want %q", left, tc.want)
			}
			if now := base.OtherCounts(baseline.Counts{Created: map[string]int{key: 5, other: 2}}, baseline.Tolerance{}); len(now) != len(tc.want) {
				t.Errorf("from then on: %q", now)
			}
		})
	}
}

// TestOneMistake checks that findings with different faults but the same problem are grouped.
func TestOneMistake(t *testing.T) {
	r := &results.Result[*Finding]{}
	for i, kind := range []faults.Kind{"CrashAfter", "Freeze", "Restart"} {
		found := &Finding{ID: fmt.Sprint(i), Workload: &workload.Workload{}, Fault: &faults.Fault{Kind: kind}, Problems: []judge.Problem{{Oracle: judge.OtherState, Lines: []string{fmt.Sprintf("secrets default/receipt-%d: it is missing", i)}}}}
		found.Repeated = i // The first finding is unconfirmed.
		r.Findings = append(r.Findings, found)
	}
	if confirmed, once := r.Groups(); len(confirmed) != 1 || len(confirmed[0].Also) != 2 || len(once) != 0 {
		t.Errorf("%d mistakes, and %d found once", len(confirmed), len(once))
	}
}

// TestShards checks that each fault belongs to exactly one shard, regardless of the other faults.
func TestShards(t *testing.T) {
	var all []faults.Planned
	for step := range 100 {
		all = append(all, faults.Planned{Fault: faults.Fault{Kind: "Restart", Step: step}})
	}
	parts := map[string]int{}
	for shard := 1; shard <= 3; shard++ {
		mine := choose(slices.Clone(all), Plan{Plan: results.Plan{Shard: shard, Shards: 3}})
		if len(mine) < 20 {
			t.Errorf("part %d has only %d faults of 100", shard, len(mine))
		}
		for _, f := range mine {
			if before := parts[f.ID()]; before > 0 {
				t.Errorf("%s is in the parts %d and %d", f.Name(), before, shard)
			}
			parts[f.ID()] = shard
		}
		// Another machine may have planned fewer faults.
		for _, f := range choose(slices.Clone(all[1:]), Plan{Plan: results.Plan{Shard: shard, Shards: 3}}) {
			if parts[f.ID()] != shard {
				t.Errorf("%s is in another part of fewer", f.Name())
			}
		}
	}
	if len(parts) != len(all) {
		t.Errorf("%d faults are in a part, want %d", len(parts), len(all))
	}
}

// TestDeletionsOfNothing checks that a fault scores lower if it hits the deletion of a missing
// object, or the write that follows it.
func TestDeletionsOfNothing(t *testing.T) {
	scores := func(status int) map[string]int {
		all := map[string]int{}
		writes := []observe.Request{{Verb: "delete", Resource: "secrets", Upstream: status}, {Verb: "update", Resource: "configmaps", Upstream: 200}}
		faults.PlanCalls(writes, 1, nil, nil, false, func(score int, f faults.Fault) {
			if f.Kind == "CrashAfter" {
				all[f.Call.Verb] = score
			}
		})
		return all
	}
	done, nothing := scores(200), scores(404)
	if nothing["delete"] >= nothing["update"] || nothing["delete"] >= done["delete"] || nothing["update"] >= done["update"] {
		t.Errorf("the scores are %v, and %v of a deletion of nothing", done, nothing)
	}
}
