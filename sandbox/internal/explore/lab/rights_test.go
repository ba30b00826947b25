// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

func TestForbidden(t *testing.T) {
	requests := []observe.Request{
		{Verb: "list", Resource: "secrets", Upstream: 403, Status: 403},
		{Verb: "list", Resource: "secrets", Upstream: 403, Status: 403},
		{Verb: "update", Resource: "leases.coordination.k8s.io", Namespace: "shop", Name: "a", Upstream: 403},
		{Verb: "get", Resource: "pods", Upstream: 200, Status: 403},
		{Verb: "get", Resource: "pods", Upstream: 404, Status: 404},
		{Verb: "get", Path: "/metrics", Upstream: 403, Status: 403},
	}
	want := []string{"get /metrics", "list secrets", "update leases.coordination.k8s.io in shop"}
	if got := forbidden(requests); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := MayNot(requests[5:]), "get /metrics: what gives its ServiceAccount these rights must be among what is installed; --service-account none gives it all rights"; got != want {
		t.Errorf("said is %q, want %q", got, want)
	}
	if got := MayNot(requests[3:5]); got != "" {
		t.Errorf("said of allowed requests is %q", got)
	}
}
