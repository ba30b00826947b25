// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// volumeAdmission evaluates the constraints on volumes while the pods of lost nodes are placed on
// other nodes.
type volumeAdmission struct {
	storage *storage
	gone    sets.Set[*node]
	// inUse contains the claims of the placed pods that only one pod can use.
	inUse sets.Set[types.NamespacedName]
	// placed holds the volumes of the placed pods, by node.
	placed map[*node]*attachedVolumes
}

// newVolumeAdmission returns a volumeAdmission for placing the pods in `homeless`, or nil if they
// have no volumes with constraints.
func newVolumeAdmission(s *storage, homeless []pod, lost []*node) *volumeAdmission {
	if !slices.ContainsFunc(homeless, func(p pod) bool { return s.demandOf(p.object, true) != nil }) {
		return nil
	}
	return &volumeAdmission{storage: s, gone: sets.New(lost...), inUse: sets.Set[types.NamespacedName]{}, placed: map[*node]*attachedVolumes{}}
}

// demandOf returns the constraints of a pod's volumes, or nil if there are none.
func (a *volumeAdmission) demandOf(p pod) *demand {
	if a == nil {
		return nil
	}
	return a.storage.demandOf(p.object, true)
}

// admits reports whether the constraints on volumes admit the pod to the node.
func (a *volumeAdmission) admits(p pod, n *node) bool {
	d := a.demandOf(p)
	if d == nil {
		return true
	}
	if len(d.refusals(n.object)) > 0 || slices.ContainsFunc(d.exclusive, a.isUsed) {
		return false
	}
	limits := limitsOf(a.storage.csiNodes[n.object.Name])
	if len(limits) == 0 {
		return true
	}
	used, placed := a.storage.attachedTo(n), a.on(n)
	return !slices.ContainsFunc(d.volumes, func(v wantedVolume) bool {
		limit, limited := limits[v.driver]
		shared, own := d.missing(v.driver, used, placed)
		return limited && shared+own > 0 && used.count[v.driver]+placed.count[v.driver]+shared+own > limit
	})
}

// isUsed reports whether a pod on a remaining node uses the claim.
func (a *volumeAdmission) isUsed(claim types.NamespacedName) bool {
	return a.inUse.Has(claim) || slices.ContainsFunc(a.storage.usersOf(claim), func(n *node) bool { return !a.gone.Has(n) })
}

func (a *volumeAdmission) on(n *node) *attachedVolumes {
	if a.placed[n] == nil {
		a.placed[n] = newAttached()
	}
	return a.placed[n]
}

// place records the volumes of a pod that was placed on the node.
func (a *volumeAdmission) place(p pod, n *node) {
	d := a.demandOf(p)
	if d == nil {
		return
	}
	a.inUse.Insert(d.exclusive...)
	on, used := a.on(n), a.storage.attachedTo(n)
	for _, v := range d.volumes {
		if v.own || !used.byPods[v.volumeID] {
			on.add(v.volumeID)
		}
	}
}

// uncertain lists the constraints on volumes that are not evaluated because something about the
// remaining nodes is not known.
func (s *storage) uncertain(homeless []pod, lost []*node) (list []string) {
	if s == nil {
		return nil
	}
	gone, seen := sets.New(lost...), sets.Set[string]{}
	for _, p := range homeless {
		d := s.demandOf(p.object, true)
		if d == nil || !slices.ContainsFunc(d.volumes, func(v wantedVolume) bool { return !seen.Has(v.driver) }) {
			continue
		}
		for _, v := range d.volumes {
			seen.Insert(v.driver)
		}
		for _, n := range s.nodes {
			if !gone.Has(n) {
				list = appendNew(list, d.uncertain(n))
			}
		}
	}
	return list
}
