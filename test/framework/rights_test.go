// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompareRights checks that CompareRights reports denied requests and excessive rights, and
// nothing else.
func TestCompareRights(t *testing.T) {
	granted := []Right{
		{Verb: "patch", Resource: "nodes"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "shop"},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "home", Name: "tide"},
		{Verb: "patch", Group: "tidekeeper.dev", Resource: "nodepools/status"},
		{Verb: "create", Group: "tidekeeper.dev", Resource: "scheduledrestarts"},
	}
	asked := []Request{
		{Verb: "patch", Resource: "nodes", Name: "a"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "home", Name: "tide"},
		{Verb: "patch", Group: "tidekeeper.dev", Resource: "nodepools", Subresource: "status", Name: "a"},
	}
	inside := []Right{granted[4]}
	for _, tt := range []struct {
		name    string
		granted []Right
		asked   []Request
		want    []string
	}{
		{"nothing wrong", nil, nil, []string{}},
		{"denied", nil, []Request{{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "s", Code: 403, Denied: true}},
			[]string{`denied: get secrets s: 403, group "", namespace "shop"`}},
		{"another verb", []Right{{Verb: "get", Resource: "nodes"}}, nil, []string{"granted and never used: get nodes"}},
		{"another namespace", []Right{{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "blog"}}, nil,
			[]string{"granted and never used: patch deployments.apps in blog"}},
		{"another name", []Right{{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "home", Name: "other"}}, nil,
			[]string{"granted and never used: update leases.coordination.k8s.io other in home"}},
		{"not the subresource", []Right{{Verb: "patch", Group: "tidekeeper.dev", Resource: "nodepools"}}, nil,
			[]string{"granted and never used: patch nodepools.tidekeeper.dev"}},
		{"wildcard", []Right{{Verb: "*", Resource: "nodes"}}, nil, []string{"wildcard: * nodes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := CompareRights(append(tt.granted, granted...), append(tt.asked, asked...), inside)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if d := cmp.Diff([]string{"said to be needed and not granted: create scheduledrestarts.tidekeeper.dev"}, CompareRights(granted[:4], asked, inside)); d != "" {
		t.Errorf("what is no longer granted (-want +got):\n%s", d)
	}
}
