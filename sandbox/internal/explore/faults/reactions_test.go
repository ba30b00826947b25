// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
)

// TestPlanReactions checks that fuzz plans its faults for each successful write.
func TestPlanReactions(t *testing.T) {
	of := func(verb, resource, name string, status int) observe.Request {
		return observe.Request{Verb: verb, Resource: resource, Namespace: "shop", Name: name, Status: status, Upstream: status}
	}
	versions := []observe.Version{objects.Version(t, "configmaps", "metadata: {name: a, namespace: shop}"), objects.Version(t, "configmaps", "metadata: {name: lock, namespace: shop}")}
	all := PlanReactions([]observe.Request{
		of("update", "configmaps", "a", 200), of("update", "configmaps", "a", 409), of("update", "configmaps", "a", 200),
		of("delete", "secrets", "b", 404), of("get", "configmaps", "a", 200), of("update", "configmaps", "lock", 200),
		of("update", "leases.coordination.k8s.io", "a", 200), {Verb: "create", Path: "/metrics", Upstream: 200},
	}, versions, map[string]bool{"configmaps shop/lock": true})
	nths := map[int]bool{}
	for i, f := range all {
		nths[f.Nth] = true
		if f.Call.String() != "update configmaps shop/a" || f.Step != Disturbed || !f.Entry().InFuzz {
			t.Errorf("it is planned that %s", f.Name())
		}
		if err := f.CheckWrite(); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
		if i > 0 && f.Score > all[i-1].Score {
			t.Errorf("%s is after a less promising fault", f.Name())
		}
	}
	if len(nths) != 2 || !nths[1] || !nths[3] {
		t.Errorf("disturbed are the calls %v, want the first and the third", nths)
	}
	for i := range Table {
		f := Fault{Kind: Table[i].Kind, Step: Disturbed, Call: &observe.Call{Verb: "update", Resource: "configmaps"}, Nth: 1}
		if err := f.CheckWrite(); (err == nil) != Table[i].InFuzz {
			t.Errorf("%s in a finding of fuzz: %v, and fuzz plays it: %t", f.Kind, err, Table[i].InFuzz)
		}
	}
	if none := PlanReactions(nil, versions, nil); len(none) > 0 {
		t.Errorf("without a write, it is planned that %v", none)
	}
}
