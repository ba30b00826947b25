// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import "slices"

// volumePreemptor evaluates the constraints of a pod's volumes while pods are removed from a node and
// added again. Its methods accept nil, for a pod without such constraints.
type volumePreemptor struct {
	*demand
	// inUse is the number of the pod's ReadWriteOncePod claims that pods use.
	inUse int
	// uses is the number of such claims on each node, before pods are removed.
	uses map[*node]int
}

func newVolumePreemptor(d *demand, nodes []*node) *volumePreemptor {
	if d == nil {
		return nil
	}
	v := &volumePreemptor{demand: d, uses: map[*node]int{}}
	for _, claim := range d.exclusive {
		if len(d.storage.usersOf(claim)) > 0 {
			v.inUse++
		}
	}
	if v.inUse > 0 {
		for _, n := range nodes {
			v.uses[n] = v.usesOn(n)
		}
	}
	return v
}

// usesOn returns the number of uses of the pod's ReadWriteOncePod claims on a node. Like the scheduler,
// it compares the names of claims only, so that claims of other namespaces count as well.
func (v *volumePreemptor) usesOn(n *node) (count int) {
	for _, p := range n.pods {
		for i := range p.object.Spec.Volumes {
			of := p.object.Spec.Volumes[i].PersistentVolumeClaim
			if of == nil {
				continue
			}
			for _, claim := range v.exclusive {
				if claim.Name == of.ClaimName {
					count++
				}
			}
		}
	}
	return count
}

// refuses reports whether the volumes admit no pod to a node, regardless of its other pods.
func (v *volumePreemptor) refuses(n *node) bool { return v != nil && len(v.refusals(n.object)) > 0 }

// admits reports whether the volumes admit the pod to a node with its present pods: its claims are
// not in use, and its volumes can be attached.
func (v *volumePreemptor) admits(n *node) bool {
	if v == nil {
		return true
	}
	if v.inUse > 0 && v.inUse+v.usesOn(n)-v.uses[n] > 0 {
		return false
	}
	limits := limitsOf(v.storage.csiNodes[n.object.Name])
	if len(limits) == 0 || len(v.volumes) == 0 {
		return true
	}
	used := v.storage.countOn(n)
	return !slices.ContainsFunc(v.volumes, func(w wantedVolume) bool {
		limit, limited := limits[w.driver]
		shared, own := v.missing(w.driver, used)
		return limited && shared+own > 0 && used.count[w.driver]+shared+own > limit
	})
}

// forget drops what is known about the volumes on a node, whose pods have changed.
func (v *volumePreemptor) forget(n *node) {
	if v != nil {
		v.storage.users = nil
		delete(v.storage.used, n)
	}
}
