// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// TestTimeline checks that a timeline contains explore's own actions, the operator's writes, and
// creations and deletions of objects, sorted by time.
func TestTimeline(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	version := func(seconds int, change watch.EventType, text string) observe.Version {
		v := objects.Version(t, "configmaps", text)
		v.Time, v.Type = at(seconds), change
		return v
	}
	before := version(0, watch.Added, "metadata: {name: before, namespace: shop}")
	before.Initial = true
	lock := version(3, watch.Modified, "metadata: {name: lock, namespace: shop}")
	leaving := version(6, watch.Modified, "metadata: {name: a, namespace: shop, deletionTimestamp: '2026-01-02T03:04:05Z'}")
	leaving.Old = objects.Version(t, "configmaps", "metadata: {name: a, namespace: shop}").Object
	o := &Outcome{Record: observe.Record{
		Began: began,
		Requests: []observe.Request{
			{Time: at(2), Verb: "create", Resource: "configmaps", Namespace: "shop", Name: "a", Status: 201, Upstream: 201},
			{Time: at(2), Verb: "get", Resource: "configmaps", Namespace: "shop", Name: "a", Status: 200, Upstream: 200},
			{Time: at(3), Verb: "update", Resource: "configmaps", Namespace: "shop", Name: "lock", Status: 200, Upstream: 200},
		},
		Versions: []observe.Version{before, version(3, watch.Added, "metadata: {name: a, namespace: shop}"), lock, leaving, version(7, watch.Deleted, "metadata: {name: a, namespace: shop}")},
	}, Problems: []Problem{{Oracle: Broken, At: at(5), Lines: []string{"two pods"}}}}
	notes := &observe.Notes{}
	notes.Add("step 1")
	notes.All[0].Time = at(1)
	o.Notes = notes.All
	var got []string
	for _, m := range Timeline(o, map[string]bool{"configmaps shop/lock": true}) {
		got = append(got, fmt.Sprintf("%.0f %s: %s", m.Seconds, m.Lane, m.Text))
	}
	want := []string{
		"1 kit: step 1", "2 operator: create configmaps shop/a: 201", "3 cluster: added configmaps shop/a", "5 kit: BROKEN: two pods",
		"6 cluster: deletion begins of configmaps shop/a", "7 cluster: deleted configmaps shop/a",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLongTimeline checks that a long timeline keeps lines near the fault, with more lines after it
// than before, and all of explore's own actions.
func TestLongTimeline(t *testing.T) {
	began := time.Now()
	o := &Outcome{Record: observe.Record{Began: began}}
	for second := range 300 {
		o.Requests = append(o.Requests, observe.Request{Time: began.Add(time.Duration(second) * time.Second), Verb: "update", Resource: "secrets", Status: 200, Upstream: 200})
	}
	notes := &observe.Notes{}
	notes.Add("the operator is started")
	notes.Add(results.Fault + "it is killed")
	notes.All[0].Time, notes.All[1].Time = began, began.Add(150*time.Second+time.Millisecond)
	o.Notes = notes.All
	got := Timeline(o, nil)
	if len(got) != mostMoments || got[0].Text != "the operator is started" {
		t.Fatalf("%d lines, which begin with %s", len(got), got[0])
	}
	earlier, later := 0, 0
	for _, m := range got[1:] {
		switch {
		case m.Seconds < 150 && m.Seconds > 100:
			earlier++
		case m.Seconds > 150.1 && m.Seconds < 200:
			later++
		}
	}
	if earlier == 0 || later < 2*earlier-2 || earlier+later < mostMoments-4 {
		t.Errorf("%d lines before the fault, and %d after it", earlier, later)
	}
}
