// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func replicaSet(t *testing.T, replicas int) Version {
	t.Helper()
	return version(t, "replicasets.apps", fmt.Sprintf("metadata: {name: web, namespace: shop, uid: rs}\nspec: {replicas: %d}", replicas))
}

func podOf(t *testing.T, name, more string) Version {
	t.Helper()
	return version(t, "pods", fmt.Sprintf("metadata: {name: %s, namespace: shop, uid: %s, ownerReferences: [{kind: ReplicaSet, name: web, uid: rs, controller: true}]%s}", name, name, more))
}

func TestTooManyPods(t *testing.T) {
	ended := podOf(t, "b", "")
	ended.Object.Object["status"] = map[string]any{"phase": "Failed"}
	gone := podOf(t, "a", "")
	gone.Type = watch.Deleted
	for _, tc := range []struct {
		name     string
		versions []Version
		broken   bool
	}{
		{name: "as many as wanted", versions: []Version{replicaSet(t, 2), podOf(t, "a", ""), podOf(t, "b", "")}},
		{name: "one too many", versions: []Version{replicaSet(t, 1), podOf(t, "a", ""), podOf(t, "b", "")}, broken: true},
		{name: "a pod that is reported again", versions: []Version{replicaSet(t, 1), podOf(t, "a", ""), podOf(t, "a", "")}},
		{name: "after a deletion began", versions: []Version{replicaSet(t, 1), podOf(t, "a", ""), podOf(t, "a", ", deletionTimestamp: 2026-01-01T00:00:00Z"), podOf(t, "b", "")}},
		{name: "after a deletion", versions: []Version{replicaSet(t, 1), podOf(t, "a", ""), gone, podOf(t, "b", "")}},
		{name: "after one has failed", versions: []Version{replicaSet(t, 1), podOf(t, "b", ""), ended, podOf(t, "c", "")}},
		{name: "while it is scaled down, which the controller may not know", versions: []Version{replicaSet(t, 2), podOf(t, "a", ""), replicaSet(t, 1), podOf(t, "b", "")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			problems := brokenInvariants(nil, tc.versions)
			if tc.broken != (len(problems) == 1) {
				t.Errorf("got %+v", problems)
			}
		})
	}
}

func TestOwnInvariants(t *testing.T) {
	w, err := ParseWorkload([]byte("steps: [{run: ls}]\ninvariants: [{name: never grows, resource: replicasets, rule: 'old == null || object.spec.replicas <= old.spec.replicas'}]"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := replicaSet(t, 1), replicaSet(t, 2)
	second.Type, second.Old = watch.Modified, first.Object
	if problems := brokenInvariants(w.Invariants, []Version{first}); len(problems) != 0 {
		t.Errorf("got %+v", problems)
	}
	problems := brokenInvariants(w.Invariants, []Version{first, second})
	if len(problems) != 1 || problems[0].Lines[0] != "replicasets.apps shop/web: never grows does not hold" {
		t.Errorf("got %+v", problems)
	}
}

func TestTakenFromAnother(t *testing.T) {
	before := podOf(t, "a", "")
	after := podOf(t, "a", "")
	refs := after.Object.GetOwnerReferences()
	refs[0].UID, refs[0].Name = "other", "api"
	after.Object.SetOwnerReferences(refs)
	after.Type, after.Old = watch.Modified, before.Object
	owner := replicaSet(t, 5)
	problems := brokenInvariants(nil, []Version{owner, before, after})
	if len(problems) != 1 || !strings.Contains(problems[0].Lines[0], "was taken from ReplicaSet web, which still exists, by ReplicaSet api") {
		t.Errorf("got %+v", problems)
	}
	owner.Type = watch.Deleted
	if problems := brokenInvariants(nil, []Version{replicaSet(t, 5), before, owner, after}); len(problems) != 0 {
		t.Errorf("an orphan may be adopted, but got %+v", problems)
	}
}

func TestOtherCounts(t *testing.T) {
	b := &Baseline{
		Counts:    [2]Counts{{Created: map[string]int{"a": 1, "b": 2, "c": 1}, Deleted: map[string]int{}}, {Created: map[string]int{"a": 1, "b": 2, "c": 4}, Deleted: map[string]int{}}},
		Uncounted: map[string]bool{"c": true},
	}
	now := Counts{Created: map[string]int{"a": 2, "b": 1, "c": 9}, Deleted: map[string]int{"a": 1}}
	want := []string{"a: created twice, not once", "b: created once, not twice", "a: deleted once, not never"}
	if lines := b.otherCounts(now, false); !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	if lines := b.otherCounts(now, true); slices.Contains(lines, want[1]) {
		t.Errorf("got %q, though it may do less", lines)
	}
}

// An operator that has not seen that an owner is gone makes what belongs to it once more.
func TestGarbageDoesNotCount(t *testing.T) {
	event := func(kind watch.EventType, resource, text string) Version {
		v := version(t, resource, text)
		v.Type = kind
		return v
	}
	const owner = "metadata: {name: app, namespace: shop, uid: app}"
	child := func(uid, more string) string {
		return "metadata: {name: web, namespace: shop, uid: " + uid + more + "}"
	}
	const owned = ", ownerReferences: [{kind: App, name: app, uid: app, controller: true}]"
	versions := []Version{
		event(watch.Added, "apps.example.com", owner), event(watch.Added, "services", child("s1", owned)),
		event(watch.Deleted, "apps.example.com", owner), event(watch.Deleted, "services", child("s1", owned)),
		event(watch.Added, "services", child("s2", owned)), event(watch.Deleted, "services", child("s2", owned)),
		event(watch.Added, "services", child("s3", "")),
	}
	for late, want := range map[bool][2]int{false: {3, 2}, true: {2, 1}} {
		c := countOf(anonymizer{}, versions, nil, false, late)
		if got := [2]int{c.Created["services shop/web"], c.Deleted["services shop/web"]}; got != want {
			t.Errorf("late %t: created and deleted %v times, want %v", late, got, want)
		}
	}
}

func TestFailuresInOutput(t *testing.T) {
	o := &output{}
	for _, part := range []string{"all is well\npan", "ic: oh\n", "no panic: here\n"} {
		if _, err := o.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if lines := o.failures(); !slices.Equal(lines, []string{"panic: oh"}) {
		t.Errorf("got %q", lines)
	}
}

// An invariant sees all objects of its moment, and may be about the end of an object.
func TestInvariantsOverAllObjects(t *testing.T) {
	w, err := ParseWorkload([]byte(`steps: [{run: ls}]
invariants:
- {name: a pod has an owner, resource: pods, rule: 'objects["replicasets.apps"].exists(r, r.metadata.name == "web")'}
- {name: an owner goes last, resource: replicasets, deleted: true, rule: '!("pods" in objects) || objects["pods"].size() == 0'}`))
	if err != nil {
		t.Fatal(err)
	}
	owner, pod := replicaSet(t, 2), podOf(t, "a", "")
	goneOwner, gonePod := owner, pod
	goneOwner.Type, gonePod.Type = watch.Deleted, watch.Deleted
	for _, tc := range []struct {
		name     string
		versions []Version
		want     string
	}{
		{name: "in order", versions: []Version{owner, pod, gonePod, goneOwner}},
		{name: "the pod comes first", versions: []Version{pod, owner}, want: "pods shop/a: a pod has an owner does not hold"},
		{name: "the owner goes first", versions: []Version{owner, pod, goneOwner}, want: "replicasets.apps shop/web: an owner goes last does not hold"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			for _, p := range brokenInvariants(w.Invariants, tc.versions) {
				got += p.Lines[0]
			}
			if !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRefusedFast(t *testing.T) {
	write := func(at time.Duration, status int) Request {
		return Request{Time: time.Unix(0, 0).Add(at), Verb: "update", Resource: "secrets", Namespace: "shop", Name: "a", Status: status, Upstream: status}
	}
	every := func(while time.Duration, status int) (all []Request) {
		for i := range 100 {
			all = append(all, write(time.Duration(i)*while, status))
		}
		return all
	}
	var doubling []Request
	for i, at := 0, 5*time.Millisecond; i < 100; i, at = i+1, at+min(at, 30*time.Second) {
		doubling = append(doubling, write(at, 409))
	}
	for _, tc := range []struct {
		name     string
		requests []Request
		found    bool
	}{
		{name: "at once, again and again", requests: every(10*time.Millisecond, 409), found: true},
		{name: "connections that are refused", requests: every(10*time.Millisecond, 0), found: true},
		{name: "ten times a second", requests: every(100*time.Millisecond, 409)},
		{name: "waits that double", requests: doubling},
		{name: "writes that are done", requests: every(10*time.Millisecond, 200)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if lines := refusedFast(tc.requests, nil); tc.found != (len(lines) == 1) {
				t.Errorf("got %q", lines)
			}
			if lines := refusedFast(tc.requests, map[string]bool{"secrets shop/a": true}); len(lines) > 0 {
				t.Errorf("a lock: got %q", lines)
			}
		})
	}
}
