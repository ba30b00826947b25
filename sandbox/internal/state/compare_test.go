// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"
	"testing"
)

// group returns a group of objects, each of which is given as a list of alternating paths and
// values.
func group(objects ...[]string) []Fields {
	var all []Fields
	for _, pairs := range objects {
		f := Fields{}
		for i := 0; i < len(pairs); i += 2 {
			f[pairs[i]] = pairs[i+1]
		}
		all = append(all, f)
	}
	return all
}

// TestGroups checks that objects with generated names are compared object by object, and not as one
// set of values.
func TestGroups(t *testing.T) {
	role := func(roles ...string) []Fields {
		var all []Fields
		for _, r := range roles {
			all = append(all, Fields{"data.role": r, "data.image": "a"})
		}
		return all
	}
	for _, tc := range []struct {
		name      string
		want, got []Fields
		says      []string
	}{
		{"the same, in another order", role("leader", "follower", "follower"), role("follower", "leader", "follower"), nil},
		{"two leaders", role("leader", "follower", "follower"), role("leader", "leader", "follower"), []string{
			"pods shop/web-*: data.role is leader ×2 | follower ×1, not follower ×2 | leader ×1",
		}},
		{"a field that one of them lacks", role("a", "a", "a"), group([]string{"data.role", "a", "data.image", "a"}, []string{"data.image", "a"}, []string{"data.role", "a", "data.image", "a"}), []string{
			"pods shop/web-*: data.role is a ×2 | missing ×1, not a",
		}},
		{"one that is not there", role("leader", "follower", "follower"), role("follower", "follower"), []string{"pods shop/web-*: there are 2, not 3"}},
		{"one too many, which is unlike the others", role("follower", "follower"), role("follower", "leader", "follower"), []string{"pods shop/web-*: there are 3, not 2"}},
		{"none", nil, role("a", "b"), []string{"pods shop/web-*: there are 2, and should be none"}},
		{
			"the same values in other objects",
			group([]string{"role", "leader", "zone", "a"}, []string{"role", "follower", "zone", "b"}),
			group([]string{"role", "leader", "zone", "b"}, []string{"role", "follower", "zone", "a"}),
			[]string{"pods shop/web-*: zone is a ×1 | b ×1, but not in the objects that should have it"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const key = "pods shop/web-*"
			if got := Lines(Compare(State{key: tc.want}, State{key: tc.got}, nil, Rules{})); !slices.Equal(got, tc.says) {
				t.Errorf("got %q, want %q", got, tc.says)
			}
			mask := NewMask()
			mask.Learn(Compare(State{key: tc.want}, State{key: tc.got}, nil, Rules{}), "")
			if left := Compare(State{key: tc.want}, State{key: tc.got}, mask, Rules{}); len(left) > 0 {
				t.Errorf("what was learnt is not masked: %q", Lines(left))
			}
		})
	}
}

// TestMask checks that a mask hides only the masked fields of an object, which may be in named list
// items.
func TestMask(t *testing.T) {
	const web, api = "deployments.apps shop/web", "deployments.apps shop/api"
	one := State{
		web: group([]string{"spec.replicas", "2", "status.conditions[Ready].status", "True", "status.log[#1]", "x", "status.history[run-1].name", "run-1", "status.history[run-1].ok", "1"}),
		api: group([]string{"spec.replicas", "2"}),
	}
	two := State{
		web: group([]string{"spec.replicas", "3", "status.conditions[Ready].status", "False", "status.log[#1]", "y", "status.history[run-2].name", "run-2", "status.history[run-2].ok", "1"}),
		api: group([]string{"spec.replicas", "2"}),
	}
	mask := NewMask()
	if added := mask.Learn(Compare(one, two, nil, Rules{}), "differs"); len(added) != 4 {
		t.Errorf("got %v", added)
	}
	if added := mask.Learn(Compare(one, two, nil, Rules{}), "differs"); len(added) != 0 {
		t.Errorf("learnt again: %v", added)
	}
	for _, tc := range []struct {
		object, path string
		want         bool
	}{
		{web, "spec.replicas", true},
		{api, "spec.replicas", false},
		{web, "status.conditions[Ready].status", true},
		{web, "status.conditions[Ready].reason", false},
		{web, "status.conditions[Failed].status", false},
		{web, "status.log[#7]", true},
		{web, "status.history[run-9].name", true},
		{web, "status.historyOf", false},
	} {
		if got := mask.of(tc.object).hides(tc.path); got != tc.want {
			t.Errorf("%s %s: %t, want %t", tc.object, tc.path, got, tc.want)
		}
	}
	var told []string
	for _, masked := range mask.All() {
		told = append(told, masked.String())
	}
	want := []string{
		web + " spec.replicas (2 or 3)", web + " status.conditions[Ready].status (True or False)",
		web + " status.history[] (run-1 or missing or run-2)", web + " status.log[] (x or y)",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}
