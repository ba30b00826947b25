// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// DeviceCounts describes the devices that a group of nodes can use.
type DeviceCounts struct {
	// Classes has an element for each DeviceClass that selects any of the devices, sorted by name.
	// A device may be in several classes.
	Classes []DeviceCount `json:"classes"`
	// AtMost lists what was not evaluated. If it is not empty, fewer devices may be free.
	AtMost []string `json:"atMost,omitempty"`
}

// DeviceCount is the number of devices of a DeviceClass.
type DeviceCount struct {
	Class   string `json:"class"`
	Devices int    `json:"devices"`
	// Free is the number of these devices that no claim has, that are not tainted, and that a node
	// can use which accepts new pods.
	Free int `json:"free"`
	// NotEvaluated is the number of further devices of the class that are partitionable or have
	// consumable capacity, so that it is not known how many claims they are enough for.
	NotEvaluated int `json:"notEvaluated,omitempty"`
}

// Devices counts the devices that the nodes can use, by DeviceClass. own lists the pool's own
// taints, which its pods are assumed to tolerate. It returns nil if the devices are not known.
func (m *Members) Devices(own []corev1.Taint) *DeviceCounts {
	i := m.classes.devices
	if i == nil || i.unread.HasAny("resourceslices", "deviceclasses") {
		return nil
	}
	all, open := sets.Set[*device]{}, sets.Set[*device]{}
	for _, n := range m.nodes {
		usable := i.on(n.object)
		all.Insert(usable...)
		if CauseOf(n.object, own, m.takesAnotherPod(n)) == "" {
			open.Insert(usable...)
		}
	}
	counts := &DeviceCounts{Classes: []DeviceCount{}}
	for _, resource := range []string{"resourceclaims", "devicetaintrules"} {
		if i.unread.Has(resource) {
			counts.AtMost = append(counts.AtMost, noRightTo(resource))
		}
	}
	for _, class := range i.source.Classes {
		d := &deviceDemand{inventory: i}
		r := deviceRequest{selectors: d.selectorsOf(class.Spec.Selectors)}
		count := DeviceCount{Class: class.Name}
		for device := range all {
			matched, failed := r.selects(device)
			if failed {
				d.lacks(failingSelectors)
			}
			switch {
			case !matched:
			case device.uncertain == partitionable || device.shared:
				count.NotEvaluated++
			default:
				count.Devices++
				if !device.allocated && !device.isTainted(nil) && open.Has(device) {
					count.Free++
				}
			}
		}
		if count.Devices+count.NotEvaluated > 0 {
			counts.Classes, counts.AtMost = append(counts.Classes, count), appendNew(counts.AtMost, d.unevaluated)
		}
	}
	slices.SortFunc(counts.Classes, func(a, b DeviceCount) int { return cmp.Compare(a.Class, b.Class) })
	return counts
}
