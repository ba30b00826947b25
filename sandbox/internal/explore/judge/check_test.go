// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

func TestOtherCounts(t *testing.T) {
	b := &baseline.Baseline{
		Counts:    [2]baseline.Counts{{Created: map[string]int{"a": 1, "b": 2, "c": 1}, Deleted: map[string]int{}}, {Created: map[string]int{"a": 1, "b": 2, "c": 4}, Deleted: map[string]int{}}},
		Uncounted: map[string]bool{"c": true},
	}
	now := baseline.Counts{Created: map[string]int{"a": 2, "b": 1, "c": 9}, Deleted: map[string]int{"a": 1}}
	want := []string{"a: created twice, not once", "b: created once, not twice", "a: deleted once, not never"}
	if lines := b.OtherCounts(now, baseline.Tolerance{}); !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	if lines := b.OtherCounts(now, baseline.Tolerance{Fewer: true}); slices.Contains(lines, want[1]) {
		t.Errorf("got %q, though it may do less", lines)
	}
	// The pods of a DaemonSet whose annotations the operator hands on: also those of the baseline do not count.
	of := func(pods, secrets int) baseline.Counts {
		return baseline.Counts{Created: map[string]int{"pods shop/agent-*": pods, "replicasets.apps shop/* of Deployment web": pods, "secrets shop/a": secrets}, Deleted: map[string]int{"pods shop/agent-*": pods}}
	}
	b = &baseline.Baseline{Counts: [2]baseline.Counts{of(6, 1), of(6, 1)}}
	for _, pods := range []int{0, 3, 12} {
		if lines := b.OtherCounts(of(pods, 1), baseline.Tolerance{Templates: true}); len(lines) > 0 {
			t.Errorf("with %d pods: %q, though pod templates may change", pods, lines)
		}
	}
	if lines := b.OtherCounts(of(6, 2), baseline.Tolerance{Templates: true}); len(lines) != 1 {
		t.Errorf("got %q, want one Secret too many", lines)
	}
}

// TestGarbageDoesNotCount checks that objects created after the deletion of their owner are not
// counted if events reach the operator late.
func TestGarbageDoesNotCount(t *testing.T) {
	event := func(kind watch.EventType, resource, text string) observe.Version {
		v := objects.Version(t, resource, text)
		v.Type = kind
		return v
	}
	const owner = "metadata: {name: app, namespace: shop, uid: app}"
	child := func(uid, more string) string {
		return "metadata: {name: web, namespace: shop, uid: " + uid + more + "}"
	}
	const owned = ", ownerReferences: [{kind: App, name: app, uid: app, controller: true}]"
	versions := []observe.Version{
		event(watch.Added, "apps.example.com", owner), event(watch.Added, "services", child("s1", owned)),
		event(watch.Deleted, "apps.example.com", owner), event(watch.Deleted, "services", child("s1", owned)),
		event(watch.Added, "services", child("s2", owned)), event(watch.Deleted, "services", child("s2", owned)),
		event(watch.Added, "services", child("s3", "")),
	}
	for late, want := range map[bool][2]int{false: {3, 2}, true: {2, 1}} {
		c := baseline.CountOf(observe.Names{}, versions, nil, false, late)
		if got := [2]int{c.Created["services shop/web"], c.Deleted["services shop/web"]}; got != want {
			t.Errorf("late %t: created and deleted %v times, want %v", late, got, want)
		}
	}
}

func TestFailuresInOutput(t *testing.T) {
	o := &operator.Output{}
	for _, part := range []string{"all is well\npan", "ic: oh\n", "no panic: here\n"} {
		if _, err := o.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if lines := o.Failures(); !slices.Equal(lines, []string{"panic: oh"}) {
		t.Errorf("got %q", lines)
	}
}

func TestRefusedFast(t *testing.T) {
	write := func(at time.Duration, status int) observe.Request {
		return observe.Request{Time: time.Unix(0, 0).Add(at), Verb: "update", Resource: "secrets", Namespace: "shop", Name: "a", Status: status, Upstream: status}
	}
	every := func(while time.Duration, status int) (all []observe.Request) {
		for i := range 100 {
			all = append(all, write(time.Duration(i)*while, status))
		}
		return all
	}
	var doubling []observe.Request
	for i, at := 0, 5*time.Millisecond; i < 100; i, at = i+1, at+min(at, 30*time.Second) {
		doubling = append(doubling, write(at, 409))
	}
	for _, tc := range []struct {
		name     string
		requests []observe.Request
		found    bool
	}{
		{name: "at once, again and again", requests: every(10*time.Millisecond, 409), found: true},
		{name: "connections that are refused", requests: every(10*time.Millisecond, 0), found: true},
		{name: "ten times a second", requests: every(100*time.Millisecond, 409)},
		{name: "waits that double", requests: doubling},
		{name: "writes that are done", requests: every(10*time.Millisecond, 200)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if lines := observe.RefusedFast(tc.requests, nil); tc.found != (len(lines) == 1) {
				t.Errorf("got %q", lines)
			}
			if lines := observe.RefusedFast(tc.requests, map[string]bool{"secrets shop/a": true}); len(lines) > 0 {
				t.Errorf("a lock: got %q", lines)
			}
		})
	}
}

// TestKnowable checks that requests for a deleted object are ignored until the object is recreated,
// if the fault hides states.
func TestKnowable(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	event := func(second int, kind watch.EventType) observe.Version {
		v := objects.Version(t, "books", "metadata: {name: a, namespace: shop}")
		v.Time, v.Type = at(second), kind
		return v
	}
	versions := []observe.Version{event(1, watch.Added), event(10, watch.Deleted), event(20, watch.Added), event(30, watch.Deleted)}
	var requests []observe.Request
	for _, second := range []int{5, 15, 25, 35} {
		requests = append(requests, observe.Request{Time: at(second), Verb: "update", Resource: "books/status", Namespace: "shop", Name: "a"})
	}
	for f, want := range map[faults.Fault][]int{{Kind: "Freeze"}: {5, 25}, {Kind: "ServerError"}: {5, 15, 25, 35}} {
		var got []int
		for _, r := range knowable(&f, requests, versions) {
			got = append(got, int(r.Time.Unix()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the requests at %v count, want %v", f.Kind, got, want)
		}
	}
}

// TestWritesToWhatIsGone checks that an operator that writes to a deleted object again and again is not
// blamed while the fault hides the deletion from it, and that it is blamed otherwise.
func TestWritesToWhatIsGone(t *testing.T) {
	began := time.Unix(0, 0)
	gone := objects.Version(t, "books", "metadata: {name: a, namespace: shop}")
	gone.Time, gone.Type = began, watch.Deleted
	var requests []observe.Request
	for i := range 100 {
		at := began.Add(time.Second + time.Duration(i)*time.Millisecond)
		requests = append(requests, observe.Request{Time: at, Verb: "update", Resource: "books/status", Namespace: "shop", Name: "a", Status: 404, Upstream: 404})
	}
	for kind, want := range map[faults.Kind]int{"Freeze": 0, "ServerError": 1} {
		once := baseline.Counts{Created: map[string]int{}, Deleted: map[string]int{"books shop/a": 1}}
		j := Judge{
			Workload: &workload.Workload{}, Fault: &faults.Fault{Kind: kind}, Recorder: &observe.Recorder{},
			Base: &baseline.Baseline{Counts: [2]baseline.Counts{once, once}},
		}
		o := &Outcome{Record: observe.Record{Requests: requests, Versions: []observe.Version{gone}}}
		if j.After(o, nil, nil); len(o.Problems) != want || want > 0 && o.Problems[0].Oracle != NotAtRest {
			t.Errorf("%s: %+v, want %d", kind, o.Problems, want)
		}
	}
}

// TestInvalid checks that Invalid excludes writes that are accepted later, and responses injected
// by a fault.
func TestInvalid(t *testing.T) {
	of := func(verb, name string, status int, injected fault.Kind) observe.Request {
		return observe.Request{Verb: verb, Resource: "services", Namespace: "shop", Name: name, Upstream: status, Status: status, Fault: injected}
	}
	requests := []observe.Request{of("create", "a", 422, ""), of("update", "b", 422, ""), of("update", "b", 200, ""), of("create", "c", 409, ""), of("update", "d", 422, "Error"), of("get", "e", 422, ""), of("create", "a", 422, "")}
	if got, want := Invalid(requests, nil), []string{"create services shop/a: 422"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
