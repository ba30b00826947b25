// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// deviceSelector is a compiled CEL selector, and the devices for which it was evaluated.
type deviceSelector struct {
	matches func(driver string, device *resourcev1.Device) (bool, error)
	// err explains why the selector does not compile.
	err   error
	known map[*device]verdict
}

// verdict is the result of evaluating a selector for a device.
type verdict struct{ matched, failed bool }

// compile compiles a selector, unless this was done before.
func (i *inventory) compile(expression string) *deviceSelector {
	s := i.selectors[expression]
	if s == nil {
		s = &deviceSelector{known: map[*device]verdict{}}
		s.matches, s.err = i.source.Compile(expression)
		i.selectors[expression] = s
	}
	return s
}

func (s *deviceSelector) of(d *device) verdict {
	result, known := s.known[d]
	if !known {
		matched, err := s.matches(d.driver, d.object)
		result = verdict{matched: matched && err == nil, failed: err != nil}
		s.known[d] = result
	}
	return result
}

// matches reports whether the request's selectors match the device and its tolerations tolerate the
// device's taints.
func (r *deviceRequest) matches(d *device) bool {
	if d.isTainted(r.tolerations) {
		return false
	}
	matched, _ := r.selects(d)
	return matched
}

// selects reports whether the request's selectors match the device. failed is true if a selector
// could not be evaluated for the device.
func (r *deviceRequest) selects(d *device) (matched, failed bool) {
	for _, s := range r.selectors {
		if result := s.of(d); !result.matched {
			return false, result.failed
		}
	}
	return true, false
}

// isTainted reports whether a taint of the device keeps claims with these tolerations from it.
func (d *device) isTainted(tolerations []resourcev1.DeviceToleration) bool {
	return slices.ContainsFunc(d.taints, func(taint resourcev1.DeviceTaint) bool {
		blocks := taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
		return blocks && !slices.ContainsFunc(tolerations, func(t resourcev1.DeviceToleration) bool { return tolerates(&t, &taint) })
	})
}

func tolerates(t *resourcev1.DeviceToleration, taint *resourcev1.DeviceTaint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case resourcev1.DeviceTolerationOpExists:
		return true
	case resourcev1.DeviceTolerationOpEqual, "":
		return t.Value == taint.Value
	}
	return false
}

// isFree reports whether a new claim can have the device, apart from its taints. `staying` contains
// the UIDs of the pods that keep their claims.
func (d *device) isFree(staying sets.Set[types.UID]) bool {
	switch {
	case d.shared || !d.allocated:
		return true
	case staying == nil:
		return false
	}
	return !slices.ContainsFunc(d.consumers, staying.Has)
}

// candidates are the devices of a node that match a request.
type candidates struct {
	devices sets.Set[*device]
	// unlimited is true if one of them can be allocated several times.
	unlimited bool
	// exist is true if any device of the node matches, even if none is free.
	exist bool
}

// candidatesOn returns the devices of a node that match each request, if they are free. If `empty`
// is set, only the claims of pods of DaemonSets have devices. uncertain names what is not evaluated.
func (d *deviceDemand) candidatesOn(n *node, empty bool) (list []candidates, uncertain []string) {
	var staying sets.Set[types.UID]
	if empty {
		staying = sets.Set[types.UID]{}
		for _, p := range n.pods {
			if pods.IsOfDaemonSet(p.object) {
				staying.Insert(p.object.UID)
			}
		}
	}
	usable := d.inventory.on(n.object)
	for k := range d.requests {
		c := candidates{devices: sets.Set[*device]{}}
		for _, device := range usable {
			matched := d.requests[k].matches(device)
			c.exist = c.exist || matched
			if !matched || !device.isFree(staying) {
				continue
			}
			c.devices.Insert(device)
			c.unlimited = c.unlimited || device.shared
			if device.uncertain != "" {
				uncertain = appendNew(uncertain, []string{device.uncertain})
			}
			if device.several {
				uncertain = appendNew(uncertain, []string{devicesOfSomeNodes})
			}
		}
		list = append(list, c)
	}
	for i := range list {
		for k := range list[:i] {
			if a, b := list[i].devices, list[k].devices; a.HasAny(b.UnsortedList()...) && !a.Equal(b) {
				uncertain = appendNew(uncertain, []string{overlappingRequests})
			}
		}
	}
	return list, uncertain
}

// limit reduces the number of copies of the pod that fit on a node by the devices of the node, and
// returns what limits the number. If `empty` is set, only the pods of DaemonSets are on the node.
//
// The devices that match a request must suffice for this request and for all others that match no
// further devices. That is exact if any two requests match either the same devices or no common
// one, and else an upper bound.
func (d *deviceDemand) limit(n *node, empty bool, copies int64, by string) (int64, string) {
	if d == nil {
		return copies, by
	}
	if d.most < copies {
		copies, by = d.most, d.mostOf
	}
	if len(d.requests) == 0 || d.inventory.isNew(n.object) {
		return copies, by
	}
	list, _ := d.candidatesOn(n, empty)
	for i, c := range list {
		if c.unlimited || empty && !c.exist { // The method refusals names devices that do not exist.
			continue
		}
		var own, shared int64
		for k, other := range list {
			switch {
			case !c.devices.IsSuperset(other.devices):
			case d.requests[k].own:
				own += d.requests[k].count
			default:
				shared += d.requests[k].count
			}
		}
		if fits := copiesWithin(int64(len(c.devices)), shared, own); fits < copies {
			copies, by = fits, "free "+d.requests[i].plural()
			if empty {
				by = d.requests[i].plural()
			}
		}
	}
	return copies, by
}

// copiesWithin returns how many copies of a pod can have `own` devices each, if all copies together
// have `shared` further devices.
func copiesWithin(devices, shared, own int64) int64 {
	switch {
	case devices < shared:
		return 0
	case own == 0:
		return math.MaxInt64
	}
	return (devices - shared) / own
}

// plural is like deviceRequest.what for several devices.
func (r *deviceRequest) plural() string { return "devices" + r.what[len("device"):] }

// refusals returns the reasons why the pod's claims admit no pod to a node, regardless of the
// node's other pods.
func (d *deviceDemand) refusals(n *corev1.Node) []string {
	if d == nil {
		return nil
	}
	reasons := slices.Clone(d.never)
	for _, p := range d.places {
		if !p.admits(n) {
			reasons = appendNew(reasons, []string{p.why})
		}
	}
	if d.inventory.isNew(n) {
		return reasons
	}
	usable := d.inventory.on(n)
	for k := range d.requests {
		if !slices.ContainsFunc(usable, d.requests[k].matches) {
			reasons = appendNew(reasons, []string{"no " + d.requests[k].what})
		}
	}
	return reasons
}

// uncertain lists the constraints on devices of a node that are not evaluated.
func (d *deviceDemand) uncertain(n *node) []string {
	switch {
	case d == nil || len(d.requests) == 0:
		return nil
	case d.inventory.isNew(n.object):
		return []string{devicesOfNewNodes}
	}
	_, uncertain := d.candidatesOn(n, false)
	return uncertain
}

// failsOn reports whether a selector cannot be evaluated for a device of a node. The scheduler may then
// fail to place the pod on any node.
func (d *deviceDemand) failsOn(n *node) bool {
	return d != nil && len(d.requests) > 0 && slices.ContainsFunc(d.inventory.on(n.object), func(device *device) bool {
		return slices.ContainsFunc(d.requests, func(r deviceRequest) bool { _, failed := r.selects(device); return failed })
	})
}

// admits reports whether the free devices of a node suffice for the pod. Evictions do not change
// that, because the scheduler does not expect devices from them.
func (d *deviceDemand) admits(n *node) bool {
	if len(d.refusals(n.object)) > 0 {
		return false
	}
	copies, _ := d.limit(n, false, 1, "")
	return copies > 0
}

// complete applies the constraints of claims that copies share, and of devices that several nodes
// can use, to the number of copies on all nodes. free lists the nodes that accept copies.
func (d *deviceDemand) complete(f *Fit, free nodeFits) {
	if d == nil || f.Copies == 0 {
		return
	}
	limit := func(most int64, what string) {
		if most < f.Copies {
			f.Copies, f.LimitedBy = most, []Count{{What: what, Nodes: f.Nodes}}
		}
	}
	limit(d.most, d.mostOf)
	for k := range d.requests {
		if !d.requests[k].own {
			continue
		}
		if devices, limited := d.together(k, free); limited {
			limit(copiesWithin(devices, 0, d.requests[k].count), "free "+d.requests[k].plural())
		}
	}
	if len(d.waiting) == 0 || f.Copies < 2 {
		return
	}
	most, equal := int64(0), d.isLocal(free)
	for _, fit := range free {
		most = max(most, fit.copies)
		equal = equal && fit.copies == free[0].copies
	}
	if d.isLocal(free) {
		limit(most, d.waiting[0])
	}
	if !equal {
		for _, what := range d.waiting {
			f.AtMost = appendNew(f.AtMost, []string{what + " without devices yet"})
		}
	}
}

// isLocal reports whether a claim that copies share can only get a device that a single node can
// use, so that all copies must run on this node.
func (d *deviceDemand) isLocal(free nodeFits) bool {
	k := slices.IndexFunc(d.requests, func(r deviceRequest) bool { return !r.own })
	if k < 0 {
		return false
	}
	for _, fit := range free {
		list, _ := d.candidatesOn(fit.node, false)
		for device := range list[k].devices {
			if device.several {
				return false
			}
		}
	}
	return true
}

// together returns the number of devices that match a request on any of the nodes, without counting
// a device twice. limited is false if the number does not limit the copies.
func (d *deviceDemand) together(request int, free nodeFits) (count int64, limited bool) {
	union := sets.Set[*device]{}
	for _, fit := range free {
		if d.inventory.isNew(fit.node.object) {
			return 0, false
		}
		list, _ := d.candidatesOn(fit.node, false)
		if list[request].unlimited {
			return 0, false
		}
		union = union.Union(list[request].devices)
	}
	return int64(len(union)), true
}
