// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Devices holds the objects of Dynamic Resource Allocation in a cluster. They determine on which
// nodes pods with ResourceClaims can run.
type Devices struct {
	Slices    []*resourcev1.ResourceSlice
	Classes   []*resourcev1.DeviceClass
	Templates []*resourcev1.ResourceClaimTemplate
	// Claims has the claims of all namespaces, because each of them may have devices.
	Claims     []*resourcev1.ResourceClaim
	TaintRules []*resourcev1.DeviceTaintRule
	// Compile compiles a CEL selector to a function that reports whether a device matches it.
	Compile func(expression string) (matches func(driver string, device *resourcev1.Device) (bool, error), err error)
	// Unread lists the resources that the user is not allowed to list, such as "resourceslices".
	Unread []string
}

// Names of constraints on devices that are not or only partly evaluated.
const (
	resourceClaims      = "resource claims"
	partitionable       = "partitionable devices"
	consumable          = "devices with consumable capacity"
	bindingConditions   = "binding conditions of devices"
	nodeAllocatable     = "node resources of devices"
	devicesOfNewNodes   = "devices of new nodes"
	devicesOfSomeNodes  = "devices that several nodes can use"
	unknownSelectors    = "selectors of devices that do not compile"
	failingSelectors    = "selectors that fail for some devices"
	overlappingRequests = "several requests that match the same devices"
)

// inventory indexes the devices of a cluster and the objects that allocate them.
type inventory struct {
	source    *Devices
	unread    sets.Set[string]
	claims    map[types.NamespacedName]*resourcev1.ResourceClaim
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	classes   map[string]*resourcev1.DeviceClass
	// local maps nodes to the devices that only they can use. others lists all other devices.
	local  map[string][]*device
	others []deviceGroup
	// selectors caches the compiled selectors by their expression.
	selectors map[string]*deviceSelector
}

// deviceID identifies a device by its driver, its resource pool and its name.
type deviceID struct{ driver, pool, name string }

// device is a device of a ResourceSlice.
type device struct {
	deviceID
	object *resourcev1.Device
	taints []resourcev1.DeviceTaint
	// several is true if several nodes can use the device.
	several bool
	// allocated is true if a claim has the device. consumers lists the UIDs of the pods that use
	// this claim.
	consumers []types.UID
	allocated bool
	// shared is true if several claims can have the device at the same time.
	shared bool
	// uncertain names the property of the device that is not evaluated; "" if there is none.
	uncertain string
}

// deviceGroup is a list of devices that the same nodes can use.
type deviceGroup struct {
	usable  func(n *corev1.Node) bool
	devices []*device
}

// objects returns the objects of the inventory, or nil if i is nil.
func (i *inventory) objects() *Devices {
	if i == nil {
		return nil
	}
	return i.source
}

func newInventory(d *Devices) *inventory {
	i := &inventory{
		source: d, unread: sets.New(d.Unread...), claims: map[types.NamespacedName]*resourcev1.ResourceClaim{}, templates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{},
		classes: map[string]*resourcev1.DeviceClass{}, local: map[string][]*device{}, selectors: map[string]*deviceSelector{},
	}
	for _, class := range d.Classes {
		i.classes[class.Name] = class
	}
	for _, template := range d.Templates {
		i.templates[keyOfClaim(template.Namespace, template.Name)] = template
	}
	byID := map[deviceID]*device{}
	for _, pool := range currentPools(d.Slices) {
		i.addPool(pool, byID)
	}
	for _, claim := range d.Claims {
		i.claims[keyOfClaim(claim.Namespace, claim.Name)] = claim
		if claim.Status.Allocation == nil {
			continue
		}
		for k := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[k]
			found := byID[deviceID{result.Driver, result.Pool, result.Device}]
			if found == nil || ptr.Deref(result.AdminAccess, false) || result.ShareID != nil {
				continue // As in the scheduler, such a claim does not keep others from the device.
			}
			found.allocated = true
			for _, consumer := range claim.Status.ReservedFor {
				found.consumers = append(found.consumers, consumer.UID)
			}
		}
	}
	return i
}

// poolID identifies a pool of devices. Such a pool is unrelated to a NodePool.
type poolID struct{ driver, name string }

// currentPools returns the ResourceSlices of the latest generation of each pool of devices. As in
// the scheduler, a pool counts only if all its slices are there, and no device is in it twice.
func currentPools(list []*resourcev1.ResourceSlice) map[poolID][]*resourcev1.ResourceSlice {
	pools := map[poolID][]*resourcev1.ResourceSlice{}
	for _, slice := range list {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		known := pools[id]
		switch {
		case len(known) == 0 || known[0].Spec.Pool.Generation < slice.Spec.Pool.Generation:
			pools[id] = []*resourcev1.ResourceSlice{slice}
		case known[0].Spec.Pool.Generation == slice.Spec.Pool.Generation:
			pools[id] = append(known, slice)
		}
	}
	for id, pool := range pools {
		names := sets.Set[string]{}
		count := 0
		for _, slice := range pool {
			for k := range slice.Spec.Devices {
				names.Insert(slice.Spec.Devices[k].Name)
				count++
			}
		}
		if int64(len(pool)) != pool[0].Spec.Pool.ResourceSliceCount || len(names) < count {
			delete(pools, id)
		}
	}
	return pools
}

// addPool adds the devices of a pool.
func (i *inventory) addPool(pool []*resourcev1.ResourceSlice, byID map[deviceID]*device) {
	grouped := hasCompatibilityGroups(pool)
	for _, slice := range pool {
		added := make([]*device, len(slice.Spec.Devices))
		for k := range slice.Spec.Devices {
			added[k] = i.newDevice(slice, &slice.Spec.Devices[k])
			if grouped && added[k].uncertain == "" {
				added[k].uncertain = partitionable
			}
			byID[added[k].deviceID] = added[k]
		}
		if !ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
			i.place(added, slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector)
			continue
		}
		for k, one := range added {
			i.place(added[k:k+1], one.object.NodeName, one.object.AllNodes, one.object.NodeSelector)
		}
	}
}

// hasCompatibilityGroups reports whether a partitionable device of a pool has compatibility groups.
// A scheduler without this feature allocates no device of such a pool.
func hasCompatibilityGroups(pool []*resourcev1.ResourceSlice) bool {
	return slices.ContainsFunc(pool, func(slice *resourcev1.ResourceSlice) bool {
		return slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool {
			return slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 })
		})
	})
}

func (i *inventory) newDevice(slice *resourcev1.ResourceSlice, object *resourcev1.Device) *device {
	d := &device{deviceID: deviceID{slice.Spec.Driver, slice.Spec.Pool.Name, object.Name}, object: object, taints: object.Taints}
	for _, rule := range i.source.TaintRules {
		if d.selectedBy(rule.Spec.DeviceSelector) {
			d.taints = append(d.taints[:len(d.taints):len(d.taints)], rule.Spec.Taint)
		}
	}
	switch {
	case len(object.ConsumesCounters) > 0:
		d.uncertain = partitionable
	case ptr.Deref(object.AllowMultipleAllocations, false):
		d.shared, d.uncertain = true, consumable
	case len(object.BindingConditions) > 0:
		d.uncertain = bindingConditions
	case len(object.NodeAllocatableResources) > 0:
		d.uncertain = nodeAllocatable
	}
	return d
}

// place adds devices to the nodes that can use them. As in the scheduler, devices without any of
// these fields belong to no node.
func (i *inventory) place(added []*device, name *string, all *bool, selector *corev1.NodeSelector) {
	usable := func(*corev1.Node) bool { return true }
	switch {
	case ptr.Deref(name, "") != "":
		i.local[*name] = append(i.local[*name], added...)
		return
	case ptr.Deref(all, false):
	case selector != nil:
		usable = selectedBy(selector)
	default:
		return
	}
	for _, d := range added {
		d.several = true
	}
	i.others = append(i.others, deviceGroup{usable, added})
}

// selectedBy returns a function that reports whether a node selector selects a node. As in the
// scheduler, an invalid selector selects none.
func selectedBy(selector *corev1.NodeSelector) func(n *corev1.Node) bool {
	lazy := nodeaffinity.NewLazyErrorNodeSelector(selector)
	return func(n *corev1.Node) bool {
		fits, err := lazy.Match(n)
		return err == nil && fits
	}
}

// selectedBy reports whether a DeviceTaintRule with the given selector taints the device.
func (d *device) selectedBy(s *resourcev1.DeviceTaintSelector) bool {
	is := func(wanted *string, got string) bool { return wanted == nil || *wanted == got }
	return s != nil && is(s.Driver, d.driver) && is(s.Pool, d.pool) && is(s.Device, d.name)
}

// on returns the devices that a node can use.
func (i *inventory) on(n *corev1.Node) []*device {
	list := slices.Clip(i.local[n.Name])
	for _, group := range i.others {
		if group.usable(n) {
			list = append(list, group.devices...)
		}
	}
	return list
}

// isNew reports whether a node does not exist yet, so that its devices are not known.
func (i *inventory) isNew(n *corev1.Node) bool { return n.UID == "" && len(i.local[n.Name]) == 0 }

// requestsOf returns the requests of a pod without the extended resources that DeviceClasses
// provide as devices, and the names of constraints that are not evaluated because of that.
func (i *inventory) requestsOf(pod *corev1.Pod) (requests []resources.Amount, unevaluated []string) {
	all := resources.Requests(pod)
	if i == nil {
		return all, nil
	}
	for _, amount := range all {
		if class := i.provider(amount.Resource); class != "" {
			unevaluated = append(unevaluated, string(amount.Resource)+" of DeviceClass "+class)
			continue
		}
		requests = append(requests, amount)
	}
	return requests, unevaluated
}

// provider returns the name of a DeviceClass whose devices can be requested as an extended
// resource; "" if there is none.
func (i *inventory) provider(name corev1.ResourceName) (class string) {
	if class, found := strings.CutPrefix(string(name), resourcev1.ResourceDeviceClassPrefix); found && i.classes[class] != nil {
		return class
	}
	for _, c := range i.classes {
		if of := c.Spec.ExtendedResourceName; of != nil && *of == string(name) && (class == "" || c.Name < class) {
			class = c.Name
		}
	}
	return class
}

// HasResourceClaims reports whether a pod has ResourceClaims, which can restrict its nodes.
func HasResourceClaims(object *corev1.Pod) bool { return len(object.Spec.ResourceClaims) > 0 }

// MayHaveDevices reports whether a pod has ResourceClaims, or requests an extended resource, which
// a DeviceClass may provide.
func MayHaveDevices(object *corev1.Pod) bool {
	if HasResourceClaims(object) {
		return true
	}
	for _, amount := range resources.Requests(object) {
		if strings.Contains(string(amount.Resource), "/") {
			return true
		}
	}
	return false
}
