// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"slices"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// TestScope checks the numbers of compared and excluded objects and fields.
func TestScope(t *testing.T) {
	run := func(oven string) *observe.Record {
		objects := []observe.Version{
			objects.Version(t, "shops", "metadata: {name: bread, namespace: default, uid: a}\nspec: {size: 2}\nstatus: {oven: "+oven+", bell: 1}"),
			objects.Version(t, "shops", "metadata: {name: cake, namespace: market, uid: b}\nspec: {size: 3}"),
			objects.Version(t, "configmaps", "metadata: {name: own, namespace: kube-system}\ndata: {a: b}"),
			objects.Version(t, "leases", "metadata: {name: leader, namespace: default}"),
			objects.Version(t, "pods", "metadata: {name: web, namespace: default}\nspec: {nodeName: one, image: web}\nstatus: {phase: Running}"),
		}
		objects[2].Prepared = true
		return &observe.Record{Took: time.Hour, Steps: []observe.StepOutcome{{Objects: objects}}, Versions: objects, Kinds: []string{"shops", "configmaps", "pods", "towns"}, Never: []string{"events"}}
	}
	b, err := Learn(run("hot"), run("cold"), nil, time.Second, []workload.Unjudged{{Resource: "shops", Path: "status.bell"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Locks["leases default/leader"] = true
	s := b.Scope(run("hot"), []string{"operator failed: panic"})
	judged := []results.Judged{
		{Resource: "pods", Namespaces: []string{"default"}, Objects: 1, Fields: 3},                // the kind, namespace and image of the pod
		{Resource: "shops", Namespaces: []string{"default", "market"}, Objects: 2, Fields: 3 + 3}, // the kind, namespace and size of both shops
	}
	if !slices.EqualFunc(s.Judged, judged, func(a, b results.Judged) bool {
		return a.Resource == b.Resource && slices.Equal(a.Namespaces, b.Namespaces) && a.Objects == b.Objects && a.Fields == b.Fields
	}) || s.Others != 2 {
		t.Errorf("judged are %+v, and %d others, want %+v", s.Judged, s.Others, judged)
	}
	left := []results.NotCompared{
		{What: "kube-system", Why: observe.OfControlPlane, Objects: 1},
		{What: "leases", Why: "the operator elects its leader by them", Objects: 1},
		{What: "fields of pods", Why: "the control plane sets them, or they are others in each run", Objects: 1, Fields: 1},
		{What: "metadata of all objects", Why: "UIDs, times, versions, generations and names are others in each run", Objects: 3, Fields: 5},
		{What: "shops status.bell", Why: "the workload says so (unjudged)", Objects: 1, Fields: 1},
		{What: "the status of pods", Why: "what kubelets and the control plane write of it", Objects: 1, Fields: 1},
	}
	if !slices.Equal(s.NotCompared, left) {
		t.Errorf("left out are\n%+v\nwant\n%+v", s.NotCompared, left)
	}
	if len(s.Masked) != 1 || s.Masked[0].Path != "status.oven" || len(s.Never) != 1 || s.Besides[0] != "reported once, and not with a fault as well: operator failed: panic" {
		t.Errorf("masked are %+v and %q, never %q", s.Masked, s.Besides, s.Never)
	}
}
