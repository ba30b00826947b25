// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

func TestUnmet(t *testing.T) {
	object := func(generation, observed int64) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"observedGeneration": observed}}}
		o.SetGeneration(generation)
		o.SetFinalizers([]string{"example.com/clean"})
		return o
	}
	watched := []string{"apps.example.com", "secrets"}
	b := &baseline{mask: NewMask(nil), watched: watched, observed: true}
	seen, err := condition.Compile("object.status.observedGeneration == object.metadata.generation && objects['secrets'].exists(s, s.metadata.name == 'key')", workload.ObjectsVariable)
	if err != nil {
		t.Fatal(err)
	}
	with := func(all ...observe.Version) func() []observe.Version { return func() []observe.Version { return all } }
	key := observe.Version{Resource: "secrets", Object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "key"}}}}
	for _, tc := range []struct {
		name   string
		goal   goal
		sight  sight
		oracle judge.Oracle
		says   string
		behind string
	}{
		{name: "any state", sight: sight{state: stated("2"), watched: watched}},
		{name: "the state", goal: goal{state: stated("1")}, sight: sight{state: stated("1"), watched: watched, object: object(2, 2)}},
		{name: "another state", goal: goal{state: stated("1")}, sight: sight{state: stated("2"), watched: watched}, oracle: judge.OtherState, says: "data.size is 2, not 1"},
		{name: "a watch is missing", sight: sight{watched: watched[:1]}, oracle: judge.NotReached, says: "the operator does not watch [secrets] any more"},
		{name: "a watch is missing while learning", goal: goal{learns: true}, sight: sight{watched: watched[:1]}},
		{name: "there is no watch while learning", goal: goal{learns: true}, oracle: judge.NotReached, says: "has not opened a watch"},
		{name: "the object is gone", goal: goal{gone: true}, sight: sight{watched: watched}},
		{
			name: "the object is not gone", goal: goal{gone: true}, sight: sight{watched: watched, object: object(2, 2)},
			oracle: judge.NotReached, says: `it was deleted, and is still there, with the finalizers ["example.com/clean"]`,
		},
		{
			name: "the generation is not observed", sight: sight{watched: watched, object: object(3, 2), key: "apps a"},
			oracle: judge.NotReached, says: "status.observedGeneration is 2, and metadata.generation 3", behind: "apps a",
		},
		{name: "the sample is not ready", goal: goal{learns: true, ready: seen}, sight: sight{watched: watched, object: object(3, 2)}, oracle: judge.NotReached, says: "the sample does not get ready"},
		{name: "there is no sample that could be ready", goal: goal{learns: true, ready: seen}, sight: sight{watched: watched}, oracle: judge.NotReached, says: "the sample does not get ready"},
		{name: "another object is missing", goal: goal{learns: true, ready: seen}, sight: sight{watched: watched, object: object(3, 3), objects: with()}, oracle: judge.NotReached, says: "the sample does not get ready"},
		{name: "the sample is ready", goal: goal{learns: true, ready: seen}, sight: sight{watched: watched, object: object(3, 3), objects: with(key)}},
		{name: "the generation is not observed while learning", goal: goal{learns: true}, sight: sight{watched: watched, object: object(3, 2)}},
	} {
		got := b.unmet(tc.goal, &tc.sight)
		got.expect(t, tc.name, tc.oracle, tc.says)
		if got != nil && got.behind != tc.behind {
			t.Errorf("%s: behind is %q, want %q", tc.name, got.behind, tc.behind)
		}
	}
}

func TestRestlessProblems(t *testing.T) {
	a := &activity{requests: 70, last: []string{"get secrets: 200"}}
	for calm, headline := range map[bool]string{
		true:  "objects go on changing; the last requests of the operator are",
		false: "70 requests in 2s, and it goes on; the last are",
	} {
		got := restless(a, calm, 2*time.Second, []string{"exclude it"})
		if want := []string{headline, "get secrets: 200", "exclude it"}; got.Oracle != judge.NotAtRest || !slices.Equal(got.Lines, want) {
			t.Errorf("calm: %t: %+v, want %q", calm, got, want)
		}
	}
}

// waits returns a waiter for a cluster with the given number of ConfigMaps. `ago` is the time since
// the last change.
func waits(t *testing.T, maps int, ago time.Duration) *waiter {
	t.Helper()
	object, _ := apps(t, nil)
	for i := range maps {
		o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"size": "1"}}}
		o.SetName("a" + strings.Repeat("a", i))
		o.SetNamespace("default")
		object.recorder.Current[types.UID(fmt.Sprint("m", i))] = &observe.Version{Resource: "configmaps", Object: o}
	}
	s := &settle.Settler{Recorder: object.recorder, Log: &observe.Log{}, Habits: &observe.Habits{}, Began: time.Now().Add(-ago)}
	return &waiter{
		base: &baseline{mask: NewMask(nil), busy: mostBusy}, object: object, record: &record{settler: s, notes: &observe.Notes{}},
		failures: func() []string { return nil }, watched: func() []string { return []string{"apps.example.com"} }, quiet: time.Minute,
	}
}

func TestWaiter(t *testing.T) {
	const ago = time.Hour
	w := waits(t, 1, ago)
	want := w.record.state()
	now, problem, err := w.reach(t.Context(), goal{state: want})
	if err != nil || problem != nil || len(now) != 1 {
		t.Errorf("a quiet cluster: %v, %+v, %v", now, problem, err)
	}
	// With a limit of 0, each of the following waits ends immediately.
	now, problem, err = w.wait(t.Context(), goal{state: stated("7")}, 0)
	if err != nil || len(now) != 1 {
		t.Errorf("another state: %v, %v", now, err)
	}
	problem.expect(t, "another state", judge.OtherState, "data.size is 1, not 7")
	w.failures = func() []string { return []string{"panic: oh"} }
	_, problem, _ = w.wait(t.Context(), goal{}, 0)
	problem.expect(t, "a failure", judge.Failed, "panic: oh")

	w = waits(t, 1, 0)
	_, problem, _ = w.wait(t.Context(), goal{state: want}, 0)
	problem.expect(t, "a cluster that changes", judge.NotAtRest, "objects go on changing")
	_, problem, _ = w.wait(t.Context(), goal{learns: true, state: want}, 0)
	problem.expect(t, "a cluster that changes, while learning", judge.NotAtRest, "objects go on changing")
	w.base.watched = []string{"secrets"}
	_, problem, _ = w.wait(t.Context(), goal{}, 0)
	problem.expect(t, "a cluster that changes, and a missing watch", judge.NotReached, "does not watch [secrets]")

	w = waits(t, 2, ago)
	line := fmt.Appendf(nil, `{"time":%q,"verb":"get","resource":"secrets","status":200}`, time.Now().Add(ago).Format(time.RFC3339Nano))
	for range int(mostBusy*w.quiet.Seconds()) + 1 {
		_, _ = w.record.settler.Log.Write(line)
	}
	_, problem, _ = w.wait(t.Context(), goal{}, 0)
	problem.expect(t, "a hot loop", judge.NotAtRest, "1201 requests in 1m0s, and it goes on")

	w = waits(t, most+2, ago)
	w.objects = 1
	var many tooManyError
	if _, _, err := w.reach(t.Context(), goal{}); !errors.As(err, &many) || int(many) != most+2 {
		t.Errorf("with too many objects: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := waits(t, 1, 0).wait(over, goal{}, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
	w = waits(t, 1, 0)
	if err := w.begun(over); !errors.Is(err, context.Canceled) {
		t.Errorf("without a reaction, after an interrupt: %v", err)
	}
	_, _ = w.record.settler.Log.Write(line) // The request ends only after begun has been called.
	if err := w.begun(t.Context()); err != nil {
		t.Error(err)
	}
}
