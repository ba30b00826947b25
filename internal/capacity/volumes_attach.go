// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// attachedVolumes holds the volumes on a node that count against its attach limits.
type attachedVolumes struct {
	// byPods contains the volumes of the node's pods. others contains the volumes that are attached
	// without such a pod.
	byPods, others map[volumeID]bool
	// count maps each driver to its number of volumes on the node, including those that are still
	// attached without a pod that uses them.
	count map[string]int64
	// inTree is true if pods use disks of in-tree drivers, which are not counted.
	inTree bool
}

func newAttached() *attachedVolumes {
	return &attachedVolumes{byPods: map[volumeID]bool{}, others: map[volumeID]bool{}, count: map[string]int64{}}
}

// add counts a volume of a pod.
func (a *attachedVolumes) add(id volumeID) {
	if !a.byPods[id] {
		a.byPods[id] = true
		a.count[id.driver]++
	}
}

// addPod adds the volumes of a pod on a node.
func (s *storage) addPod(to *attachedVolumes, object *corev1.Pod) {
	for i := range object.Spec.Volumes {
		v := &object.Spec.Volumes[i]
		key := keyOfClaim(object.Namespace, object.Name+"-"+v.Name)
		switch {
		case v.PersistentVolumeClaim != nil:
			key.Name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral == nil:
			to.inTree = to.inTree || v.AWSElasticBlockStore != nil || v.GCEPersistentDisk != nil || v.AzureDisk != nil || v.Cinder != nil || v.PortworxVolume != nil
			continue
		}
		claim, pv := s.claims[key], s.bound[key]
		if of := s.source.Namespace; of == "" || of == key.Namespace {
			pv = nil // As in the scheduler, volumes of missing claims do not count.
			if claim != nil {
				pv = s.volumes[claim.Spec.VolumeName]
			}
		}
		switch {
		case pv != nil && isMigrated(pv):
			to.inTree = true
		case pv != nil && pv.Spec.CSI != nil:
			to.add(volumeID{pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle})
		case pv == nil && claim != nil:
			if class := s.classes[classOf(claim.Annotations, claim.Spec.StorageClassName)]; class != nil {
				to.add(volumeID{class.Provisioner, key.String()})
			}
		}
	}
}

// attachedTo returns the volumes that are attached to a node, or will be for its pods.
func (s *storage) attachedTo(n *node) *attachedVolumes {
	if s.used[n] == nil {
		s.used[n] = s.countOn(n)
	}
	return s.used[n]
}

// countOn is like attachedTo, for a node whose pods may change afterwards.
func (s *storage) countOn(n *node) *attachedVolumes {
	a := newAttached()
	for _, p := range n.pods {
		s.addPod(a, p.object)
	}
	for _, attachment := range s.attachments[n.object.Name] {
		if attachment.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		if pv := s.volumes[*attachment.Spec.Source.PersistentVolumeName]; pv != nil && pv.Spec.CSI != nil {
			if id := (volumeID{attachment.Spec.Attacher, pv.Spec.CSI.VolumeHandle}); !a.byPods[id] && !a.others[id] {
				a.others[id] = true
				a.count[id.driver]++
			}
		}
	}
	return a
}

// ofDaemonSets returns the volumes of the node's DaemonSet pods.
func (s *storage) ofDaemonSets(n *node) *attachedVolumes {
	a := newAttached()
	for _, p := range n.pods {
		if pods.IsOfDaemonSet(p.object) {
			s.addPod(a, p.object)
		}
	}
	return a
}

// missing returns how many of the pod's volumes of a driver are not among the given volumes: the
// volumes that all copies share, and the volumes that each copy brings.
func (d *demand) missing(driver string, from ...*attachedVolumes) (shared, own int64) {
	counted := map[volumeID]bool{}
	for _, v := range d.volumes {
		if v.driver != driver || counted[v.volumeID] || !v.own && slices.ContainsFunc(from, func(a *attachedVolumes) bool { return a.byPods[v.volumeID] }) {
			continue
		}
		counted[v.volumeID] = true
		if v.own {
			own++
		} else {
			shared++
		}
	}
	return shared, own
}

// attachedAlone returns how many of the volumes of a driver that all copies share are attached to a
// node without a pod that uses them.
func (d *demand) attachedAlone(driver string, to *attachedVolumes) (count int64) {
	seen := map[volumeID]bool{}
	for _, v := range d.volumes {
		if v.driver == driver && !v.own && to.others[v.volumeID] && !seen[v.volumeID] {
			seen[v.volumeID] = true
			count++
		}
	}
	return count
}

// limit reduces the number of copies of the pod that fit on a node by the attach limits of the node, and
// returns what limits the number. If `empty` is set, only the pods of DaemonSets are on the node.
func (d *demand) limit(n *node, empty bool, copies int64, by string) (int64, string) {
	if d == nil || len(d.volumes) == 0 {
		return copies, by
	}
	limits := limitsOf(d.storage.csiNodes[n.object.Name])
	if len(limits) == 0 {
		return copies, by
	}
	used := d.storage.attachedTo(n)
	if empty {
		used = d.storage.ofDaemonSets(n)
	}
	for _, v := range d.volumes {
		limit, limited := limits[v.driver]
		shared, own := d.missing(v.driver, used)
		if !limited || shared+own == 0 {
			continue
		}
		fits := int64(math.MaxInt64)
		switch room := limit - used.count[v.driver] - shared; {
		case room < 0:
			fits = 0
		case own > room:
			fits = 0
		case own > 0:
			// As in the scheduler, a shared volume that is attached without a pod counts twice for the
			// first copy, and once for the others.
			fits = (room + d.attachedAlone(v.driver, used)) / own
		}
		if fits < copies {
			copies, by = fits, "attachable volumes of "+v.driver
		}
	}
	return copies, by
}

// refusals returns the reasons why the pod's volumes admit no pod to a node, regardless of its
// other pods.
func (d *demand) refusals(n *corev1.Node) []string {
	return d.refusalsBy(n, func(place) bool { return true })
}

// refusalsBy is like refusals, for the places that `counts` selects.
func (d *demand) refusalsBy(n *corev1.Node, counts func(place) bool) []string {
	if d == nil {
		return nil
	}
	reasons := slices.Clone(d.never)
	for _, p := range d.places {
		if counts(p) && !p.admits(n) {
			reasons = appendNew(reasons, []string{p.why})
		}
	}
	return reasons
}

// conflict returns the reason why no node takes the pod because another pod uses its claim.
func (d *demand) conflict() string {
	if d != nil && slices.ContainsFunc(d.exclusive, func(claim types.NamespacedName) bool { return len(d.storage.usersOf(claim)) > 0 }) {
		return claimInUse
	}
	return ""
}

// claimInUse is the reason why no node takes a pod whose claim only one pod can use.
const claimInUse = "ReadWriteOncePod claim in use"

// single returns the name of the constraint that limits the cluster to one copy of the pod, or ""
// if there is none.
func (d *demand) single() string {
	if d == nil || d.once == "" {
		return ""
	}
	return "ReadWriteOncePod " + d.once
}

// uncertain lists the constraints that are not evaluated because something about a node is not
// known.
func (d *demand) uncertain(n *node) (list []string) {
	if d == nil {
		return nil
	}
	for _, v := range d.volumes {
		switch {
		case !d.storage.limited.Has(v.driver):
		case d.storage.isNew(n.object):
			list = appendNew(list, []string{newAttachLimits})
		case d.storage.attachedTo(n).inTree:
			list = appendNew(list, []string{inTreeDisks})
		}
	}
	return list
}

// refusalsOfAll is like refusals, but omits reasons that apply only to the first copy of the pod.
func (d *demand) refusalsOfAll(n *corev1.Node) []string {
	return d.refusalsBy(n, func(p place) bool { return !p.first })
}

// first returns the nodes that accept copies, given those that accept any copy but the first. There
// are none if no node accepts the first copy, and no others than those if it is the only copy. The
// reasons of the nodes that are left out are added to refusals.
func (d *demand) first(free nodeFits, refusals map[Count]int) (result nodeFits) {
	if d == nil {
		return free
	}
	for _, fit := range free {
		if len(d.refusals(fit.node.object)) == 0 {
			result = append(result, fit)
		}
	}
	if len(result) > 0 && d.once == "" {
		return free
	}
	for _, fit := range free {
		if reasons := d.refusals(fit.node.object); len(reasons) > 0 {
			refusals[Count{What: strings.Join(reasons, " and ")}]++
		}
	}
	return result
}

// complete applies the constraints of claims that copies share to the number of copies on all
// nodes. free lists the nodes that accept copies.
func (d *demand) complete(f *Fit, free nodeFits) {
	switch {
	case d == nil:
	case d.once != "":
		f.Copies = min(f.Copies, 1)
	case f.Copies > 1, len(free) > 1 && slices.ContainsFunc(d.places, func(p place) bool { return p.first }):
		for _, name := range d.unbound {
			f.AtMost = appendNew(f.AtMost, []string{"unbound " + name})
		}
	}
}

// keyOf returns a string that is equal for pods whose volumes have the same constraints.
func (s *storage) keyOf(object *corev1.Pod) string {
	d := s.demandOf(object, false)
	if d == nil {
		return ""
	}
	parts := slices.Concat([]string{"volumes", d.once}, d.never, d.unbound, d.unevaluated)
	for _, p := range d.places {
		parts = append(parts, p.why, p.key)
	}
	for _, v := range d.volumes {
		parts = append(parts, v.driver)
		if !v.own {
			parts = append(parts, v.handle)
		}
	}
	return strings.Join(parts, "\x00")
}
