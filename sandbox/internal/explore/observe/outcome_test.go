// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"testing"
	"time"
)

// TestWrote checks that Wrote ignores deletions and writes to subresources.
func TestWrote(t *testing.T) {
	request := func(verb, resource, name string) Request {
		return Request{Verb: verb, Resource: resource, Namespace: "default", Name: name, Upstream: 200}
	}
	for key, requests := range map[string]Request{
		"pods default/web-*": request("create", "pods", "web-x"), "pods default/api-*": request("create", "pods", ""), "shops default/a": request("patch", "shops", "a"),
	} {
		if o := (&Record{Requests: []Request{requests}}); !o.Wrote(key) {
			t.Errorf("%s was written by %v", key, requests)
		}
	}
	for key, requests := range map[string]Request{
		"shops default/a": request("update", "shops/status", "a"), "shops default/b": request("delete", "shops", "b"), "shops default/c": request("update", "shops", "d"),
	} {
		if o := (&Record{Requests: []Request{requests}}); o.Wrote(key) {
			t.Errorf("%s was not written by %v", key, requests)
		}
	}
}

// TestAsksIn checks that the requests to applications in a step are counted by kind, with a path only if
// that is the same in each run.
func TestAsksIn(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	request := func(second int, verb, resource, name string) Request {
		return Request{Time: began.Add(time.Duration(second) * time.Second), Verb: verb, Resource: resource, Name: name}
	}
	older := request(4, "GET", "app=shop:80", "/price")
	older.Older = true
	o := &Record{Steps: []StepOutcome{{Began: began}, {Began: began.Add(2 * time.Second)}}, Began: began, Took: time.Minute, Requests: []Request{
		request(1, "GET", "app=shop:80", "/price"),
		request(2, "POST", "app=shop:80", "/orders/1"), request(3, "GET", "app=shop:80", "/price"), older, request(5, "POST", "app=shop:80", "/orders/2"),
		request(6, "get", "pods", "a"), request(7, Exchange, "app=store:2181", ""),
	}}
	got := fmt.Sprint(o.AsksIn(1, map[string]bool{NameKey("app=shop:80", "", "/price"): true}))
	if want := "[{POST app=shop:80 2 []} {GET app=shop:80 /price 2 [2]} {SEND app=store:2181 1 []}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := fmt.Sprint(o.Paths()); got != "map[app=shop:80 //orders/1:true app=shop:80 //orders/2:true app=shop:80 //price:true]" {
		t.Errorf("got the paths %s", got)
	}
}
