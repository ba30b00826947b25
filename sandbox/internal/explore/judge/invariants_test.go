// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

func replicaSet(t *testing.T, replicas int) observe.Version {
	t.Helper()
	return objects.Version(t, "replicasets.apps", fmt.Sprintf("metadata: {name: web, namespace: shop, uid: rs}\nspec: {replicas: %d}", replicas))
}

func podOf(t *testing.T, name, more string) observe.Version {
	t.Helper()
	return objects.Version(t, "pods", fmt.Sprintf("metadata: {name: %s, namespace: shop, uid: %s, ownerReferences: [{kind: ReplicaSet, name: web, uid: rs, controller: true}]%s}", name, name, more))
}

func TestTooManyPods(t *testing.T) {
	ended := podOf(t, "b", "")
	ended.Object.Object["status"] = map[string]any{"phase": "Failed"}
	gone := podOf(t, "a", "")
	gone.Type = watch.Deleted
	released := objects.Version(t, "pods", "metadata: {name: a, namespace: shop, uid: a}")
	toAnother := objects.Version(t, "pods", "metadata: {name: a, namespace: shop, uid: a, ownerReferences: [{kind: ReplicaSet, name: api, uid: other, controller: true}]}")
	for _, tc := range []struct {
		name     string
		versions []observe.Version
		broken   bool
	}{
		{name: "as many as wanted", versions: []observe.Version{replicaSet(t, 2), podOf(t, "a", ""), podOf(t, "b", "")}},
		{name: "one too many", versions: []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), podOf(t, "b", "")}, broken: true},
		{name: "a pod that is reported again", versions: []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), podOf(t, "a", "")}},
		{name: "after a deletion began", versions: []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), podOf(t, "a", ", deletionTimestamp: 2026-01-01T00:00:00Z"), podOf(t, "b", "")}},
		{name: "after a deletion", versions: []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), gone, podOf(t, "b", "")}},
		{name: "after one has failed", versions: []observe.Version{replicaSet(t, 1), podOf(t, "b", ""), ended, podOf(t, "c", "")}},
		{name: "after one was released", versions: []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), released, podOf(t, "b", "")}},
		{name: "after one was released, one too many", versions: []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), released, podOf(t, "b", ""), podOf(t, "c", "")}, broken: true},
		{name: "after one was adopted by another", versions: []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), toAnother, podOf(t, "b", "")}},
		{name: "while it is scaled down, which the controller may not know", versions: []observe.Version{replicaSet(t, 2), podOf(t, "a", ""), replicaSet(t, 1), podOf(t, "b", "")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			problems := brokenInvariants(nil, tc.versions)
			if tc.broken != (len(problems) == 1) {
				t.Errorf("got %+v", problems)
			}
		})
	}
}

// TestBrokenSinceAMark checks that a violation recurring after the given time is reported even if
// it also occurred before, and that Forget keeps only existing objects.
func TestBrokenSinceAMark(t *testing.T) {
	at := func(second int64, v observe.Version) observe.Version {
		v.Time, v.Revision = time.Unix(second, 0), second
		return v
	}
	gone := podOf(t, "b", "")
	gone.Type = watch.Deleted
	r := &observe.Recorder{Current: map[types.UID]*observe.Version{}}
	for i, v := range []observe.Version{replicaSet(t, 1), podOf(t, "a", ""), podOf(t, "b", ""), gone} {
		v = at(int64(i+1), v)
		r.Versions = append(r.Versions, v)
		if r.Current[v.Object.GetUID()] = &v; v.Type == watch.Deleted {
			delete(r.Current, v.Object.GetUID())
		}
	}
	if before := BrokenSince(time.Unix(1, 0), nil, r.Versions); len(before) != 1 {
		t.Fatalf("before the mark: %+v", before)
	}
	r.Forget()
	if len(r.Versions) != 2 {
		t.Errorf("%d versions are kept, want those of two objects", len(r.Versions))
	}
	r.Versions = append(r.Versions, at(11, podOf(t, "c", "")))
	versions, _ := r.All()
	if after := BrokenSince(time.Unix(10, 0), nil, versions); len(after) != 1 || after[0].At != time.Unix(11, 0) {
		t.Errorf("after the mark: %+v", after)
	}
	r.Versions = append(r.Versions, at(12, podOf(t, "d", "")))
	versions, _ = r.All()
	if later := BrokenSince(time.Unix(12, 0), nil, versions); len(later) != 1 || later[0].At != time.Unix(12, 0) {
		t.Errorf("what was broken before and is again: %+v", later)
	}
}

func TestOwnInvariants(t *testing.T) {
	w, err := workload.Parse([]byte("steps: [{run: ls}]\ninvariants: [{name: never grows, resource: replicasets, rule: 'old == null || object.spec.replicas <= old.spec.replicas'}]"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := replicaSet(t, 1), replicaSet(t, 2)
	second.Type, second.Old = watch.Modified, first.Object
	if problems := brokenInvariants(w.Invariants, []observe.Version{first}); len(problems) != 0 {
		t.Errorf("got %+v", problems)
	}
	problems := brokenInvariants(w.Invariants, []observe.Version{first, second})
	if len(problems) != 1 || problems[0].Lines[0] != "replicasets.apps shop/web: never grows does not hold" {
		t.Errorf("got %+v", problems)
	}
	second.InGap = true
	if problems := brokenInvariants(w.Invariants, []observe.Version{first, second}); len(problems) != 0 {
		t.Errorf("versions of other objects may be missing, and yet: %+v", problems)
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
	problems := brokenInvariants(nil, []observe.Version{owner, before, after})
	if len(problems) != 1 || !strings.Contains(problems[0].Lines[0], "was taken from ReplicaSet web, which still exists, by ReplicaSet api") {
		t.Errorf("got %+v", problems)
	}
	owner.Type = watch.Deleted
	if problems := brokenInvariants(nil, []observe.Version{replicaSet(t, 5), before, owner, after}); len(problems) != 0 {
		t.Errorf("an orphan may be adopted, but got %+v", problems)
	}
}

// TestHandedOn checks that a StatefulSet with whenScaled: Delete may pass a PersistentVolumeClaim
// to the pod that will be deleted, and take it back.
func TestHandedOn(t *testing.T) {
	claim := func(owner string) observe.Version {
		return objects.Version(t, "persistentvolumeclaims", "metadata: {name: data-db-1, namespace: shop, uid: claim, ownerReferences: ["+owner+"]}")
	}
	set := objects.Version(t, "statefulsets.apps", "metadata: {name: db, namespace: shop, uid: db}\nspec: {replicas: 2}")
	pod := objects.Version(t, "pods", "metadata: {name: db-1, namespace: shop, uid: pod, ownerReferences: [{kind: StatefulSet, name: db, uid: db, controller: true}]}")
	before, after := claim("{kind: StatefulSet, name: db, uid: db, controller: true}"), claim("{kind: Pod, name: db-1, uid: pod, controller: true}")
	there, back := after, before
	there.Type, there.Old = watch.Modified, before.Object
	back.Type, back.Old = watch.Modified, after.Object
	if got := broken([]observe.Version{set, pod, before, there, back}); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestInvariantsOverAllObjects checks that an invariant can refer to all objects existing at the
// time, and can apply to deletions.
func TestInvariantsOverAllObjects(t *testing.T) {
	w, err := workload.Parse([]byte(`steps: [{run: ls}]
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
		versions []observe.Version
		want     string
	}{
		{name: "in order", versions: []observe.Version{owner, pod, gonePod, goneOwner}},
		{name: "the pod comes first", versions: []observe.Version{pod, owner}, want: "pods shop/a: a pod has an owner does not hold"},
		{name: "the owner goes first", versions: []observe.Version{owner, pod, goneOwner}, want: "replicasets.apps shop/web: an owner goes last does not hold"},
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

// broken returns the lines of all built-in invariant violations.
func broken(versions []observe.Version) string {
	var lines []string
	for _, p := range brokenInvariants(nil, versions) {
		lines = append(lines, p.Lines...)
	}
	return strings.Join(lines, "; ")
}

func deployment(t *testing.T, spec string) observe.Version {
	t.Helper()
	return objects.Version(t, "deployments.apps", "metadata: {name: web, namespace: shop, uid: d}\nspec: "+spec)
}

func replicaSetOf(t *testing.T, name string, replicas int) observe.Version {
	t.Helper()
	return objects.Version(t, "replicasets.apps", fmt.Sprintf("metadata: {name: %s, namespace: shop, uid: %s, ownerReferences: [{kind: Deployment, name: web, uid: d, controller: true}]}\nspec: {replicas: %d}", name, name, replicas))
}

func TestTooManyReplicas(t *testing.T) {
	const found = "Deployment shop/web has ReplicaSets for more pods than the 5 replicas and surge that it ever asked for"
	quarter := deployment(t, "{replicas: 4, strategy: {rollingUpdate: {maxSurge: 25%}}}")
	gone := replicaSetOf(t, "a", 4)
	gone.Type = watch.Deleted
	released := objects.Version(t, "replicasets.apps", "metadata: {name: a, namespace: shop, uid: a}\nspec: {replicas: 4}")
	for _, tc := range []struct {
		name     string
		versions []observe.Version
		want     string
	}{
		{name: "after one was released", versions: []observe.Version{quarter, replicaSetOf(t, "a", 4), released, replicaSetOf(t, "b", 5)}},
		{name: "one that was there before", versions: []observe.Version{replicaSetOf(t, "a", 4), quarter, replicaSetOf(t, "b", 2)}, want: found},
		{name: "with the surge", versions: []observe.Version{quarter, replicaSetOf(t, "a", 4), replicaSetOf(t, "b", 1)}},
		{name: "one too many", versions: []observe.Version{quarter, replicaSetOf(t, "a", 4), replicaSetOf(t, "b", 2)}, want: found},
		{name: "a share is rounded up", versions: []observe.Version{deployment(t, "{replicas: 4, strategy: {rollingUpdate: {maxSurge: 1%}}}"), replicaSetOf(t, "a", 4), replicaSetOf(t, "b", 2)}, want: found},
		{name: "a number", versions: []observe.Version{deployment(t, "{replicas: 3, strategy: {rollingUpdate: {maxSurge: 2}}}"), replicaSetOf(t, "a", 3), replicaSetOf(t, "b", 3)}, want: found},
		{name: "all are replaced at once", versions: []observe.Version{deployment(t, "{replicas: 5, strategy: {type: Recreate}}"), replicaSetOf(t, "a", 5), replicaSetOf(t, "a", 0), replicaSetOf(t, "b", 5)}},
		{name: "all are replaced at once, too early", versions: []observe.Version{deployment(t, "{replicas: 5, strategy: {type: Recreate}}"), replicaSetOf(t, "a", 5), replicaSetOf(t, "b", 1)}, want: found},
		{name: "scaled down, which the controller may not know", versions: []observe.Version{quarter, replicaSetOf(t, "a", 4), deployment(t, "{replicas: 1}"), replicaSetOf(t, "b", 1)}},
		{name: "less, of too many", versions: []observe.Version{deployment(t, "{replicas: 9}"), replicaSetOf(t, "a", 9), deployment(t, "{replicas: 1}"), replicaSetOf(t, "a", 8)}},
		{name: "after one is gone", versions: []observe.Version{quarter, replicaSetOf(t, "a", 4), gone, replicaSetOf(t, "b", 5)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := broken(tc.versions); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWantedClaims(t *testing.T) {
	const deleted = ", deletionTimestamp: 2026-01-01T00:00:00Z"
	statefulSet := func(replicas int, more, spec string) observe.Version {
		return objects.Version(t, "statefulsets.apps", fmt.Sprintf("kind: StatefulSet\nmetadata: {name: db, namespace: shop, uid: db%s}\nspec: {replicas: %d, volumeClaimTemplates: [{metadata: {name: data}}]%s}", more, replicas, spec))
	}
	owner := func(more string) observe.Version {
		return objects.Version(t, "dbs.example.com", "kind: DB\nmetadata: {name: db, namespace: shop, uid: cr"+more+"}")
	}
	const owned = ", ownerReferences: [{kind: DB, name: db, uid: cr, controller: true}]"
	pod := func(more string) observe.Version {
		return objects.Version(t, "pods", "kind: Pod\nmetadata: {name: one, namespace: shop, uid: one"+more+"}\nspec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data-db-1}}]}")
	}
	claim := func(name, more string) observe.Version {
		return objects.Version(t, "persistentvolumeclaims", "metadata: {name: "+name+", namespace: shop, uid: "+name+more+"}")
	}
	gone := func(v observe.Version) observe.Version {
		v.Type = watch.Deleted
		return v
	}
	goes := func(name, more string) []observe.Version {
		return []observe.Version{claim(name, more), gone(claim(name, more))}
	}
	begins := claim("data-db-1", deleted)
	begins.Old, begins.Type = claim("data-db-1", "").Object, watch.Modified
	ends := gone(claim("data-db-1", deleted))
	ends.Old = begins.Object
	const bySet = "persistentvolumeclaims shop/data-db-1 is deleted, though StatefulSet db wants it"
	for _, tc := range []struct {
		name     string
		versions []observe.Version
		want     string
	}{
		{name: "of a replica", versions: append([]observe.Version{statefulSet(2, "", "")}, goes("data-db-1", "")...), want: bySet},
		{name: "it begins, and ends", versions: []observe.Version{statefulSet(2, "", ""), claim("data-db-1", ""), begins, ends}, want: bySet},
		{name: "it has begun before there was the set", versions: []observe.Version{claim("data-db-1", ""), begins, statefulSet(2, "", ""), ends}},
		{name: "of a replica that is not wanted any more", versions: append([]observe.Version{statefulSet(1, "", "")}, goes("data-db-1", "")...)},
		{name: "ordinals that begin later", versions: append([]observe.Version{statefulSet(1, "", ", ordinals: {start: 1}")}, goes("data-db-1", "")...), want: bySet},
		{name: "of another set", versions: append([]observe.Version{statefulSet(2, "", "")}, goes("data-other-1", "")...)},
		{name: "no number", versions: append([]observe.Version{statefulSet(2, "", "")}, goes("data-db-x", "")...)},
		{name: "the set goes, too", versions: append([]observe.Version{statefulSet(2, deleted, "")}, goes("data-db-1", "")...)},
		{name: "the set is gone", versions: append([]observe.Version{statefulSet(2, "", ""), gone(statefulSet(2, "", ""))}, goes("data-db-1", "")...)},
		{name: "its owner stays", versions: append([]observe.Version{owner(""), statefulSet(2, owned, "")}, goes("data-db-1", "")...), want: bySet},
		{name: "its owner goes", versions: append([]observe.Version{owner(deleted), statefulSet(2, owned, "")}, goes("data-db-1", "")...)},
		{name: "the owner of the claim is gone", versions: append([]observe.Version{statefulSet(2, "", "")}, goes("data-db-1", owned)...)},
		{name: "of a pod", versions: append([]observe.Version{pod("")}, goes("data-db-1", "")...), want: "persistentvolumeclaims shop/data-db-1 is deleted, though Pod one wants it"},
		{name: "of a pod that goes, too", versions: append([]observe.Version{pod(deleted)}, goes("data-db-1", "")...)},
		{name: "of no pod", versions: append([]observe.Version{pod("")}, goes("data-db-2", "")...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := broken(tc.versions); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOwnersInACircle checks that stays terminates if objects control each other.
func TestOwnersInACircle(t *testing.T) {
	o := newOwners()
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		v := objects.Version(t, "dbs.example.com", fmt.Sprintf("metadata: {name: %s, namespace: shop, uid: %s, ownerReferences: [{kind: DB, name: %s, uid: %s, controller: true}]}", names[0], names[0], names[1], names[1]))
		o.saw(&v)
	}
	if !o.stays("a") {
		t.Error("neither goes")
	}
}
