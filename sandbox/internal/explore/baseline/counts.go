// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// derived lists resources that are not counted, because controllers create and delete their objects
// in varying numbers.
var derived = []string{"persistentvolumes", "controllerrevisions.apps", "endpointslices.discovery.k8s.io"}

// Counts holds the numbers of objects that were created and deleted in a run, by object key.
// Objects with generated names may share a key.
type Counts struct{ Created, Deleted map[string]int }

// CountOf counts the objects that were created and deleted in a run. It counts pods only if `pods`
// is set, for operators that create pods themselves. The number of pods that other controllers
// create depends on timing. If `late` is set, events may reach the operator late, so that it
// creates objects after the deletion of their owner. CountOf then ignores such objects, which the
// garbage collector removes. It also ignores the objects used for leader election, whose keys are
// in `locks`.
func CountOf(names observe.Names, versions []observe.Version, locks map[string]bool, pods, late bool) Counts {
	c := Counts{Created: map[string]int{}, Deleted: map[string]int{}}
	gone, garbage := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range versions {
		v := &versions[i]
		uid := v.Object.GetUID()
		switch owners := v.Object.GetOwnerReferences(); {
		case v.Type == watch.Deleted:
			gone[uid] = true
		case v.Type == watch.Added && late && len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return !gone[o.UID] && !garbage[o.UID] }):
			garbage[uid] = true
		}
		if v.Initial || garbage[uid] || observe.LeftOut(v, locks) || v.Resource == "pods" && !pods || slices.Contains(derived, v.Resource) {
			continue
		}
		switch v.Type {
		case watch.Added:
			c.Created[names.Key(v)]++
		case watch.Deleted:
			c.Deleted[names.Key(v)]++
		}
	}
	return c
}

func unite(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// Tolerance lists the differences from the counts of the baseline that do not count as a problem.
type Tolerance struct {
	// Fewer tolerates objects that are created or deleted less often.
	Fewer bool
	// Templates tolerates any number of ReplicaSets and pods, which are replaced whenever a pod
	// template changes.
	Templates bool
}

// ignores reports whether the objects with a key are not counted.
func (t Tolerance) ignores(key string) bool {
	return t.Templates && slices.Contains([]string{"replicasets.apps", "pods"}, state.ResourceOf(key))
}
