// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// story simulates a sequence of object versions at given times.
type story struct {
	began    time.Time
	current  map[string]*unstructured.Unstructured
	versions []Version
}

func newStory() *story {
	return &story{began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), current: map[string]*unstructured.Unstructured{}}
}

// at passes a new ConfigMap version with the given status to `h`, at a time in seconds since the
// beginning.
func (s *story) at(seconds float64, h *Habits, name string, status map[string]any) {
	v := Version{
		Time: s.began.Add(time.Duration(seconds * float64(time.Second))), Type: watch.Added, Resource: "configmaps", Old: s.current[name],
		Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": name, "uid": name, "resourceVersion": time.Duration(seconds * 1e9).String()}, "status": status,
		}},
	}
	if v.Old != nil {
		v.Type = watch.Modified
	}
	v.Habit = !h.changed(&v)
	s.current[name] = v.Object
	s.versions = append(s.versions, v)
}

func (s *story) quiet(seconds float64, h *Habits, enough time.Duration) time.Duration {
	return h.Quiet(s.began, s.began.Add(time.Duration(seconds*float64(time.Second))), enough)
}

func status(pairs ...any) map[string]any {
	fields := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i].(string)] = pairs[i+1]
	}
	return fields
}

const enoughQuiet = 5 * time.Second

// TestHabits checks that a field that changes back and forth in an otherwise quiet cluster is
// learned as a habit. The field is masked, and does not count as activity in runs that know the
// habit.
func TestHabits(t *testing.T) {
	s, h := newStory(), &Habits{Learns: true}
	s.at(0, h, "shop", status("ready", "no"))
	for i := range 10 {
		s.at(float64(2*i+2), h, "shop", status("ready", "no", "sign", []any{"tick", "tock"}[i%2]))
	}
	if quiet := s.quiet(20, h, enoughQuiet); quiet < enoughQuiet {
		t.Errorf("all is at rest for %s, want %s", quiet, enoughQuiet)
	}
	learnt := h.Learnt(enoughQuiet)
	if len(learnt) != 1 || learnt[0].Habit != (Habit{"configmaps shop/shop", "status.sign"}) {
		t.Fatalf("learnt is %+v", learnt)
	}
	mask := state.NewMask()
	learnt[0].Mask(Names{}, mask)
	if all := mask.All(); len(all) != 1 || all[0].String() != "configmaps shop/shop status.sign (tick or tock)" {
		t.Errorf("masked is %v", all)
	}
	if mask.Hides("configmaps shop/shop", "status.ready") || !mask.Hides("configmaps shop/shop", "status.sign") {
		t.Error("masked is another field")
	}

	known := &Habits{}
	known.Know(map[Habit]bool{learnt[0].Habit: true})
	s.at(30, known, "shop", status("ready", "yes", "sign", "tick"))
	for i := range 3 {
		s.at(32+float64(2*i), known, "shop", status("ready", "yes", "sign", []any{"tock", "tick"}[i%2]))
	}
	if quiet := s.quiet(37, known, enoughQuiet); quiet != 7*time.Second {
		t.Errorf("what is known is unrest: all is at rest for %s", quiet)
	}
	unknown := &Habits{}
	s.at(40, unknown, "shop", status("ready", "yes", "sign", "tock"))
	if quiet := s.quiet(41, unknown, enoughQuiet); quiet != time.Second {
		t.Errorf("what is not known is no unrest: all is at rest for %s", quiet)
	}
}

// TestNoHabits checks that a counter is no habit, nor is a field that changes back and forth while
// other objects change, as in a rollout.
func TestNoHabits(t *testing.T) {
	s, h := newStory(), &Habits{Learns: true}
	s.at(0, h, "web", status("ready", "3"))
	for i := range 6 {
		s.at(float64(i)+0.5, h, "pod-"+string(rune('a'+i)), status("phase", "Running"))
		s.at(float64(i)+0.6, h, "web", status("ready", []any{"2", "3"}[i%2]))
	}
	if quiet := s.quiet(9, h, enoughQuiet); quiet >= enoughQuiet {
		t.Errorf("all is at rest after %s", quiet)
	}
	if quiet := s.quiet(12, h, enoughQuiet); quiet < enoughQuiet {
		t.Errorf("all is at rest for only %s", quiet)
	}
	if learnt := h.Learnt(enoughQuiet); len(learnt) > 0 {
		t.Errorf("learnt is %+v", learnt)
	}
	s, h = newStory(), &Habits{Learns: true}
	for i := range 20 {
		s.at(float64(2*i), h, "web", status("count", int64(i)))
	}
	if quiet := s.quiet(39, h, enoughQuiet); quiet >= enoughQuiet || len(h.Learnt(enoughQuiet)) > 0 {
		t.Errorf("what counts is a habit: all is at rest for %s, %v", quiet, h.Learnt(enoughQuiet))
	}
	s, h = newStory(), &Habits{Learns: true, Unjudged: []workload.Unjudged{{Resource: "configmaps", Path: "status.count"}}}
	for i := range 20 {
		s.at(float64(2*i), h, "web", status("count", int64(i)))
	}
	if quiet := s.quiet(39, h, enoughQuiet); quiet < enoughQuiet {
		t.Errorf("what is not judged is unrest: all is at rest for %s", quiet)
	}
}

// TestHabitAsLongAsQuiet checks that Quiet waits for another period of a change whose period is
// close to the quiet time.
func TestHabitAsLongAsQuiet(t *testing.T) {
	s, h := newStory(), &Habits{Learns: true}
	s.at(0, h, "shop", status())
	s.at(2, h, "shop", status("sign", "tick"))
	s.at(4.1, h, "shop", status("sign", "tock"))
	if quiet := s.quiet(6.15, h, 2*time.Second); quiet >= 2*time.Second {
		t.Errorf("all is at rest for %s, though it may change at this moment", quiet)
	}
	if quiet := s.quiet(7.3, h, 2*time.Second); quiet < 2*time.Second {
		t.Errorf("all is at rest for %s, and it has not changed once more", quiet)
	}
}

// TestWritesThatChangeNothing checks that writes without effect are not activity. A rejected write
// is activity, unless it also recurs in baseline runs.
func TestWritesThatChangeNothing(t *testing.T) {
	update := Request{Verb: "update", Resource: "configmaps", Namespace: "shop", Name: "a"}
	answered := func(r Request, status int) *Request {
		r.Status, r.Upstream = status, status
		return &r
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	h := &Habits{}
	gone := update
	gone.Verb = "delete"
	for i := range 5 {
		h.wrote(answered(update, 200), after(i))
		h.wrote(answered(gone, 404), after(i))
	}
	if quiet := h.Quiet(began, after(5), enoughQuiet); quiet != 5*time.Second {
		t.Errorf("what changes nothing is unrest: all is at rest for %s", quiet)
	}
	h.wrote(answered(update, 422), after(5))
	if quiet := h.Quiet(began, after(6), enoughQuiet); quiet != time.Second {
		t.Errorf("what is refused is no unrest: all is at rest for %s", quiet)
	}
	learns := &Habits{Learns: true}
	for i := range 12 {
		learns.wrote(answered(update, 422), after(2*i))
	}
	learnt := learns.Learnt(enoughQuiet)
	if quiet := learns.Quiet(began, after(23), enoughQuiet); quiet < enoughQuiet || len(learnt) != 1 {
		t.Fatalf("all is at rest for %s, learnt is %v", quiet, learnt)
	}
	known := &Habits{}
	known.Know(map[Habit]bool{learnt[0].Habit: true})
	known.wrote(answered(update, 422), after(5))
	known.wrote(answered(update, 409), after(2))
	if quiet := known.Quiet(began, after(6), enoughQuiet); quiet != 4*time.Second {
		t.Errorf("all is at rest for %s since the write that was refused otherwise", quiet)
	}
}

// TestStanding checks that Standing excludes differences in objects that keep changing.
func TestStanding(t *testing.T) {
	s := newStory()
	for i := range 3 {
		s.at(float64(i), &Habits{}, "clock", status("count", int64(i)))
	}
	s.at(-60, &Habits{}, "old", status())
	gone := s.versions[3]
	gone.Type, gone.Time = watch.Deleted, s.began.Add(time.Second)
	gone.Object = gone.Object.DeepCopy()
	gone.Object.SetName("gone")
	all := []state.Difference{
		{Object: "configmaps shop/clock", Path: "status.count"}, {Object: "configmaps shop/old", Path: "status.ready"},
		{Object: "configmaps shop/gone", Text: "it is missing"}, {Object: "configmaps shop/never", Text: "it is missing"},
	}
	var left []string
	for _, d := range Standing(all, Names{}, append(s.versions, gone), s.began.Add(-time.Second)) {
		left = append(left, strings.TrimPrefix(d.Object, "configmaps shop/"))
	}
	if want := []string{"old", "gone", "never"}; !slices.Equal(left, want) {
		t.Errorf("%q stand, want %q", left, want)
	}
}

// TestRestless checks that Restless reports a write with an effect rather than more frequent writes
// without effect, and that Advice suggests a field to exclude and a shorter --quiet.
func TestRestless(t *testing.T) {
	s, h := newStory(), &Habits{}
	s.at(-60, h, "beat", status())
	s.at(-50, h, "clock", status("count", int64(-1)))
	for i := range 5 {
		s.at(float64(2*i), h, "clock", status("count", int64(i)))
	}
	s.versions = append(s.versions, s.versions[3])
	s.versions[len(s.versions)-1].Habit = true
	s.versions[len(s.versions)-1].Object = s.versions[0].Object
	var requests []Request
	for i := range 9 {
		requests = append(requests, Request{Time: s.began.Add(time.Duration(i) * time.Second), Verb: "update", Resource: "configmaps", Namespace: "shop", Name: "beat", Status: 200, Upstream: 200})
	}
	for i := range 4 {
		requests = append(requests, Request{Time: s.began.Add(time.Duration(i) * time.Second), Verb: "update", Resource: "configmaps/status", Namespace: "shop", Name: "clock", Status: 200, Upstream: 200})
	}
	now := s.began.Add(9 * time.Second)
	if got, want := Restless(requests, s.versions, nil, RestlessFor, now), "it does not come to rest: the operator's update configmaps/status shop/clock, 4 times in the last 10s; the last writes are"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got := Advice(s.versions, now.Add(-RestlessFor), enoughQuiet, UnjudgedLine)
	want := []string{
		"if that may be so, no run need be judged by what changes; add:",
		"  unjudged: [{resource: configmaps, path: 'status.count'}]",
		"or, as nothing happens for at least 2s in between: --quiet 1.5s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("advised is %q, want %q", got, want)
	}
	made := s.versions[1]
	made.Type, made.Time, made.Habit = watch.Added, now, false
	if got := Advice(append(slices.Clone(s.versions), made), now.Add(-RestlessFor), enoughQuiet, UnjudgedLine); got != nil {
		t.Errorf("objects come, and advised is %q", got)
	}
	several := newStory()
	several.at(-60, h, "clock", status())
	for i := range 5 {
		several.at(float64(2*i), h, "clock", status("a", int64(i), "b", int64(i), "c", int64(i), "d", int64(i)))
	}
	if got := Advice(several.versions, now.Add(-RestlessFor), enoughQuiet, UnjudgedLine); got != nil {
		t.Errorf("four fields change, and advised is %q", got)
	}
}

// TestRecorderKnowsHabits checks that a recorder passes each version to Habits, and sets Habit on
// the versions that belong to a habit.
func TestRecorderKnowsHabits(t *testing.T) {
	h := &Habits{}
	h.Know(map[Habit]bool{{"configmaps shop/a", "data.sign"}: true})
	r := &Recorder{Current: map[types.UID]*Version{}, Habits: h, lock: func(string) {}, changed: make(chan struct{})}
	object := func(version, sign, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "1", "resourceVersion": version}, "data": map[string]any{"sign": sign, "value": value},
		}}
	}
	r.saw("configmaps", watch.Added, object("1", "tick", "one"), true)
	before := h.Since()
	r.saw("configmaps", watch.Modified, object("2", "tock", "one"), false)
	if !h.Since().Equal(before) {
		t.Error("a habit is unrest")
	}
	r.saw("configmaps", watch.Modified, object("3", "tick", "two"), false)
	if h.Since().Equal(before) {
		t.Error("another value is a habit")
	}
	if all, _ := r.All(); all[0].Habit || !all[1].Habit || all[2].Habit {
		t.Errorf("habits are %t, %t, %t", all[0].Habit, all[1].Habit, all[2].Habit)
	}
}
