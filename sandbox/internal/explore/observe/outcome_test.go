// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "testing"

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
