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

// derived are resources that are not counted, because controllers create and delete them as
// often as needed.
var derived = []string{"persistentvolumes", "controllerrevisions.apps", "endpointslices.discovery.k8s.io"}

// Counts are the numbers of created and deleted objects, by key.
type Counts struct{ Created, Deleted map[string]int }

// CountOf counts the objects that were created and deleted. Pods count only if the operator
// creates them itself, as the number of pods created by other controllers depends on timing. If
// late is set, events reach the operator late: then objects that it creates for a deleted owner
// do not count, because the garbage collector removes them.
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

// WithoutTemplates returns the counts without ReplicaSets and pods, which are created again for
// each revision of a template.
func (c Counts) WithoutTemplates() Counts {
	left := Counts{Created: maps.Clone(c.Created), Deleted: maps.Clone(c.Deleted)}
	for _, counts := range []map[string]int{left.Created, left.Deleted} {
		maps.DeleteFunc(counts, func(key string, _ int) bool {
			return slices.Contains([]string{"replicasets.apps", "pods"}, state.ResourceOf(key))
		})
	}
	return left
}
