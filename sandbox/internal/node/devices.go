// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DevicesAnnotation on a Node lists the simulated devices of the node, for Dynamic Resource
// Allocation, in the form that [ParseDevices] accepts.
const DevicesAnnotation = "sandbox.tidekeeper.dev/devices"

// Names of an attribute and of a capacity of simulated devices.
const (
	modelAttribute = "model"
	memoryCapacity = "memory"
)

const defaultModel = "simulated"

// deviceMemory is the memory of each simulated device.
var deviceMemory = resource.MustParse("16Gi")

// Devices is a number of equal devices of a driver.
type Devices struct {
	Driver, Model string
	Count         int
}

// ParseDevices parses a list of devices, such as gpu.example.com=4, or, with models of the devices,
// gpu.example.com/large=2,gpu.example.com/small=2.
func ParseDevices(list string) ([]Devices, error) {
	var all []Devices
	sums := map[string]int{}
	for item := range strings.SplitSeq(list, ",") {
		name, number, _ := strings.Cut(item, "=")
		driver, model, hasModel := strings.Cut(name, "/")
		count, err := strconv.Atoi(number)
		if err != nil || count < 1 {
			return nil, fmt.Errorf("%q: want driver=count or driver/model=count, like gpu.example.com=4", item)
		}
		if problems := validation.IsDNS1123Subdomain(driver); len(problems) > 0 || len(driver) > resourcev1.DriverNameMaxLength {
			return nil, fmt.Errorf("%q: the name of a driver is a domain of at most %d characters, like gpu.example.com", item, resourcev1.DriverNameMaxLength)
		}
		if hasModel && model == "" || len(model) > resourcev1.DeviceAttributeMaxValueLength {
			return nil, fmt.Errorf("%q: the name of a model has 1 to %d characters", item, resourcev1.DeviceAttributeMaxValueLength)
		}
		if sums[driver] += count; count > resourcev1.ResourceSliceMaxDevices || sums[driver] > resourcev1.ResourceSliceMaxDevices {
			return nil, fmt.Errorf("%q: a node has at most %d devices of a driver", item, resourcev1.ResourceSliceMaxDevices)
		}
		all = append(all, Devices{Driver: driver, Model: cmp.Or(model, defaultModel), Count: count})
	}
	return all, nil
}

// Drivers returns the sorted names of the drivers of the devices.
func Drivers(all []Devices) []string {
	var names []string
	for _, d := range all {
		names = append(names, d.Driver)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SliceName returns the name of the ResourceSlice with a node's devices of a driver.
func SliceName(node, driver string) string { return node + "-" + driver }

// ResourceSlices returns a ResourceSlice for each driver of the node's devices. The garbage collector
// deletes it with the node.
func ResourceSlices(n *corev1.Node) ([]*resourcev1.ResourceSlice, error) {
	text := n.Annotations[DevicesAnnotation]
	if text == "" {
		return nil, nil
	}
	all, err := ParseDevices(text)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("annotation %s", DevicesAnnotation), err)
	}
	var list []*resourcev1.ResourceSlice
	for _, driver := range Drivers(all) {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
			Name:            SliceName(n.Name, driver),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID, Controller: new(true)}},
		}}
		s.Spec = resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, Generation: 1, ResourceSliceCount: 1}}
		for _, d := range all {
			if d.Driver != driver {
				continue
			}
			for range d.Count {
				s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
					Name:       fmt.Sprintf("device-%d", len(s.Spec.Devices)),
					Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{modelAttribute: {StringValue: &d.Model}},
					Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{memoryCapacity: {Value: deviceMemory}},
				})
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// DeviceClass returns the DeviceClass of all devices of a driver. It has the name of the driver.
func DeviceClass(driver string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
		}}},
	}
}
