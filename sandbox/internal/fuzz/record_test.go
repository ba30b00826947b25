// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// TestActivityOf checks that only reads and writes that ended recently count as activity.
func TestActivityOf(t *testing.T) {
	now := time.Now()
	of := func(verb, resource string, ago time.Duration, seconds float64) observe.Request {
		return observe.Request{Verb: verb, Resource: resource, Name: "a", Time: now.Add(-ago), Seconds: seconds, Status: 200, Upstream: 200}
	}
	locks := map[string]bool{"configmaps /a": true}
	for _, tc := range []struct {
		name    string
		request observe.Request
		want    int
	}{
		{"a read", of("get", "secrets", time.Second, 0), 1},
		{"a list", of("list", "secrets", time.Second, 0), 1},
		{"a write", of("update", "secrets", time.Second, 0), 1},
		{"a watch", of("watch", "secrets", time.Second, 0), 0},
		{"a read long ago", of("get", "secrets", time.Hour, 0), 0},
		{"a read that took long", of("get", "secrets", time.Hour, 3599), 1},
		{"a Lease", of("update", "leases.coordination.k8s.io", time.Second, 0), 0},
		{"a lock", of("get", "configmaps", time.Second, 0), 0},
		{"a path", observe.Request{Verb: "get", Path: "/version", Time: now}, 0},
	} {
		if got := activityOf([]observe.Request{tc.request}, locks, now.Add(-time.Minute)); got.requests != tc.want || len(got.last) != tc.want {
			t.Errorf("%s: %+v, want %d requests", tc.name, got, tc.want)
		}
	}
	var many []observe.Request
	for i := range 9 {
		many = append(many, observe.Request{Verb: "get", Resource: "secrets", Name: fmt.Sprint(i), Time: now, Status: 200, Upstream: 200})
	}
	if got := activityOf(many, nil, now.Add(-time.Minute)); got.requests != 9 || len(got.last) != 5 || got.last[4] != "get secrets 8: 200" {
		t.Errorf("of many: %+v", got)
	}
}

// recorded returns a record with the given current objects.
func recorded(present ...observe.Version) *record {
	recorder := &observe.Recorder{Current: map[types.UID]*observe.Version{}}
	for i := range present {
		v := &present[i]
		v.Time = time.Now()
		recorder.Versions = append(recorder.Versions, *v)
		recorder.Current[types.UID(fmt.Sprint(i))] = v
	}
	s := &settle.Settler{Recorder: recorder, Log: &observe.Log{}, Habits: &observe.Habits{}}
	return &record{settler: s, notes: &observe.Notes{}, began: time.Now().Add(-time.Minute)}
}

// wrote adds one of the operator's requests to the record.
func (r *record) wrote(verb, resource string, status int) {
	_, _ = fmt.Fprintf(r.settler.Log, `{"time":%q,"verb":%q,"resource":%q,"namespace":"default","name":"a","status":%d,"upstream":%d}`,
		time.Now().Format(time.RFC3339Nano), verb, resource, status, status)
}

// TestMark checks that a mark discards earlier requests, versions and actions, but keeps the
// current objects.
func TestMark(t *testing.T) {
	r := recorded(objects.Version(t, "configmaps", "metadata: {name: a, namespace: default, uid: a, managedFields: [{manager: operator}]}\ndata: {size: '1'}"))
	gone := objects.Version(t, "configmaps", "metadata: {name: b, namespace: default, uid: b, managedFields: [{manager: curl}]}")
	r.settler.Recorder.Versions = append(r.settler.Recorder.Versions, gone)
	r.wrote("create", "configmaps", 201)
	r.act("an object is made")
	if m := r.managers(); !m["operator"] || !m["curl"] {
		t.Errorf("the managers are %v", m)
	}
	texts := func() string {
		var all []string
		for _, m := range r.timeline() {
			all = append(all, m.Lane+": "+m.Text)
		}
		return strings.Join(all, "; ")
	}
	if got, want := texts(), results.Operator+": create configmaps default/a: 201; "+results.Kit+": an object is made"; !strings.Contains(got, results.Cluster+": added configmaps default/a") || !strings.Contains(got, want) {
		t.Errorf("the timeline is %q, want %q", got, want)
	}
	if f := r.reactions(); len(f) == 0 || f[0].Call.Name != "a" {
		t.Errorf("the faults of the write are %v", f)
	}
	r.mark()
	if got := texts(); got != "" || len(r.reactions()) > 0 || len(r.requests()) > 0 {
		t.Errorf("after a mark, the timeline is %q, with the faults %v", got, r.reactions())
	}
	if m := r.managers(); len(r.state()) != 1 || !m["operator"] || m["curl"] || r.settler.Began.Before(r.began) {
		t.Errorf("after a mark, the state is %v, of %v", r.state(), r.managers())
	}
	if a := r.activity(time.Hour); a.requests != 0 || a.quiet >= time.Hour {
		t.Errorf("after a mark there is %+v", a)
	}
}

// TestRequestsAreForgotten checks that the requests in memory do not grow with the number of marks,
// and that the ones that later trials need are kept.
func TestRequestsAreForgotten(t *testing.T) {
	r := recorded(objects.Version(t, "configmaps", "metadata: {name: a, namespace: default, uid: a}"))
	log := r.settler.Log
	var kept int
	for trial := range 100 {
		r.wrote("update", "configmaps", 200)
		r.wrote("list", "secrets", 403)
		r.wrote("update", "leases.coordination.k8s.io", 200)
		r.wrote("get", "configmaps", 200)
		r.wrote("delete", "secrets", 200) // It does not exist any more.
		if now := len(r.requests()); now != 5 {
			t.Fatalf("in trial %d there are %d requests", trial, now)
		}
		r.mark()
		if len(r.requests()) != 0 || log.Len() != 5*(trial+1) {
			t.Fatalf("after trial %d there are %v of %d", trial, r.requests(), log.Len())
		}
		if trial == 0 {
			kept = len(log.Since(0))
		}
	}
	var all []string
	for _, request := range log.Since(0) {
		all = append(all, request.Verb+" "+request.Resource)
	}
	slices.Sort(all)
	if want := []string{"list secrets", "update configmaps", "update leases.coordination.k8s.io"}; !slices.Equal(all, want) || kept != len(want) {
		t.Errorf("kept are %q, and %d after the first trial, want %q", all, kept, want)
	}
}

// TestScopeOfRecord checks that objects that only record history are excluded from the state, and
// reported as excluded.
func TestScopeOfRecord(t *testing.T) {
	r := recorded(
		objects.Version(t, "configmaps", "metadata: {name: a, namespace: default, uid: a}\ndata: {size: '1'}"),
		objects.Version(t, "controllerrevisions.apps", "metadata: {name: old, namespace: default, uid: b}\nrevision: 1"),
	)
	if got := r.state(); len(got) != 1 {
		t.Errorf("the state is %v", got)
	}
	s := r.scope(state.NewMask(), []string{"jobs.batch"})
	if len(s.Judged) != 1 || s.Judged[0].Resource != "configmaps" || !slices.Contains(s.Besides, "jobs.batch: --ignore says so") {
		t.Errorf("judged are %+v, besides %q", s.Judged, s.Besides)
	}
	if !slices.ContainsFunc(s.NotCompared, func(n results.NotCompared) bool {
		return n.What == "controllerrevisions.apps" && n.Why == "the history of others"
	}) {
		t.Errorf("not compared are %+v", s.NotCompared)
	}
}

// TestStrangersOfRecord checks that other clients' writes and proxy rules are detected.
func TestStrangersOfRecord(t *testing.T) {
	r := recorded(objects.Version(t, "configmaps", "metadata: {name: a, namespace: default, uid: a, managedFields: [{manager: curl}]}"))
	known := map[string]bool{"operator": true}
	if err := r.strangers(nil, known); err == nil || !strings.Contains(err.Error(), "another client, curl") {
		t.Errorf("with a stranger: %v", err)
	}
	if err := r.strangers(nil, map[string]bool{"curl": true}); err != nil {
		t.Errorf("without a stranger: %v", err)
	}
	if err := r.strangers([]fault.RuleStatus{{Rule: fault.Rule{Name: "mine"}}}, known); err == nil || !strings.Contains(err.Error(), `"mine"`) {
		t.Errorf("with another rule: %v", err)
	}
	r.wrote("update", "configmaps", 200)
	r.mark()
	if err := r.strangers(nil, known); err != nil {
		t.Errorf("after a write of the operator before the mark: %v", err)
	}
}

// TestBrokenInvariants checks that an invariant is reported only if it was violated since the last
// mark.
func TestBrokenInvariants(t *testing.T) {
	owner := "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]"
	var present []observe.Version
	present = append(present, objects.Version(t, "replicasets.apps", "kind: ReplicaSet\nmetadata: {name: web, namespace: default, uid: web}\nspec: {replicas: 1}"))
	for i := range 2 {
		present = append(present, objects.Version(t, "pods", fmt.Sprintf("metadata: {name: web-%d, namespace: default, uid: p%d, %s}", i, i, owner)))
	}
	r := recorded(present...)
	problem, err := r.broken()
	if err != nil {
		t.Fatal(err)
	}
	problem.expect(t, "before a mark", "invariant broken", "more pods than")
	r.mark()
	if problem, err = r.broken(); problem != nil || err != nil {
		t.Errorf("after a mark: %+v, %v", problem, err)
	}
	if present[0].Type != watch.Added {
		t.Errorf("the versions are %s", present[0].Type)
	}
}
