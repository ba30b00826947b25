// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/kube/deviceselector"
)

// gpus is the driver and the DeviceClass of the devices in these tests.
const gpus = "gpu.example.com"

// someDevices returns the devices of three nodes of [threeNodes]: a1 has four, of which the first
// two are of the model large, a2 has two, of which a claim has the first, and b1 has none.
func someDevices() *Devices {
	d := &Devices{
		Slices:  []*resourcev1.ResourceSlice{aSlice("a1", "large", "large", "small", "small"), aSlice("a2", "large", "small")},
		Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: gpus}, Spec: resourcev1.DeviceClassSpec{Selectors: cel(`device.driver == "gpu.example.com"`)}}},
		Claims:  []*resourcev1.ResourceClaim{aResourceClaim("used", "a2", 0)}, Compile: deviceselector.Compile,
	}
	d.Claims[0].Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "user", UID: "user"}}
	return d
}

// aSlice returns the only ResourceSlice of a node, with a device of each model.
func aSlice(node string, models ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: gpus, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}}
	for i, model := range models {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new(model)}},
		})
	}
	return s
}

// aResourceClaim returns a claim that has a device of a node.
func aResourceClaim(name, node string, device int) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: oneOf(gpus)}
	c.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: gpus, Pool: node, Device: fmt.Sprint("gpu-", device)}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}
	return c
}

func cel(expressions ...string) (list []resourcev1.DeviceSelector) {
	for _, expression := range expressions {
		list = append(list, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return list
}

// oneOf returns the spec of a claim that requests one device of the class that matches the
// selectors.
func oneOf(class string, selectors ...string) (s resourcev1.ResourceClaimSpec) {
	s.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1, Selectors: cel(selectors...),
	}}}
	return s
}

// both returns the spec of a claim with the requests of both specs.
func both(a, b resourcev1.ResourceClaimSpec) resourcev1.ResourceClaimSpec {
	a.Devices.Requests = append(a.Devices.Requests, b.Devices.Requests...)
	return a
}

// changed returns the spec after a change of its only request.
func changed(s resourcev1.ResourceClaimSpec, change func(r *resourcev1.ExactDeviceRequest)) resourcev1.ResourceClaimSpec {
	change(s.Devices.Requests[0].Exactly)
	return s
}

// deviceFit is a case of TestFitDevices: a pod with a claim of its own, from a template with the
// spec, or with a named claim.
type deviceFit struct {
	name    string
	spec    resourcev1.ResourceClaimSpec
	claim   string
	change  func(d *Devices)
	copies  int64
	limited []Count
	refused []Count
	atMost  []string
}

const large = `device.attributes["gpu.example.com"].model == "large"`

func deviceFits() []deviceFit {
	class, request := "devices of class "+gpus, "devices of class "+gpus+" for request r"
	free := func(what string, nodes int) []Count { return []Count{{What: "free " + what, Nodes: nodes}} }
	none := func(why string) []Count { return []Count{{What: why, Nodes: 3}} }
	without := []Count{{What: "no device of class " + gpus, Nodes: 1}}
	// cpu is the limit if devices do not limit the copies: 4 on each node.
	cpu := func(nodes int) []Count { return []Count{{What: "cpu", Nodes: nodes}} }
	firstDevice := func(change func(device *resourcev1.Device)) func(d *Devices) {
		return func(d *Devices) { change(&d.Slices[1].Spec.Devices[1]) }
	}
	anyNode := func(d *Devices) {
		slice := aSlice("any", "large", "large", "large")
		slice.Spec.NodeName, slice.Spec.AllNodes = nil, new(true)
		d.Slices = append(d.Slices, slice)
	}
	return []deviceFit{
		{name: "a free device", spec: oneOf(gpus), copies: 5, limited: append(cpu(1), free(class, 1)...), refused: without},
		{name: "a selector of the request", spec: oneOf(gpus, large), copies: 2, limited: free(request, 1),
			refused: []Count{{What: "no device of class " + gpus + " for request r", Nodes: 1}, {What: "not enough free " + request, Nodes: 1}}},
		{name: "several devices", spec: changed(oneOf(gpus), func(r *resourcev1.ExactDeviceRequest) { r.Count = 2 }), copies: 2, limited: free(class, 1),
			refused: []Count{{What: "no device of class " + gpus, Nodes: 1}, {What: "not enough free " + class, Nodes: 1}}},
		{name: "more devices than a node has", spec: changed(oneOf(gpus), func(r *resourcev1.ExactDeviceRequest) { r.Count = 5 }),
			refused: []Count{{What: "larger than the node: " + class, Nodes: 2, TooSmall: true}, {What: "no device of class " + gpus, Nodes: 1}}},
		{name: "more devices than a claim can have", spec: changed(oneOf(gpus), func(r *resourcev1.ExactDeviceRequest) { r.Count = 1 << 62 }),
			refused: []Count{{What: "more than 32 devices in a resource claim and larger than the node: " + class, Nodes: 2, TooSmall: true}, {What: "more than 32 devices in a resource claim and no device of class " + gpus, Nodes: 1}}},
		{name: "two equal requests", spec: both(oneOf(gpus), oneOf(gpus)), copies: 2, limited: free(class, 1),
			refused: []Count{{What: "no device of class " + gpus, Nodes: 1}, {What: "not enough free " + class, Nodes: 1}}},
		{name: "two different requests", spec: both(oneOf(gpus, large), oneOf(gpus, `!(`+large+`)`)), copies: 2, limited: free(request, 1),
			refused: []Count{{What: "no device of class " + gpus + " for request r", Nodes: 1}, {What: "not enough free " + request, Nodes: 1}}},
		{name: "two overlapping requests", spec: both(oneOf(gpus, large), oneOf(gpus)), copies: 2, limited: free(request, 1), atMost: []string{overlappingRequests},
			refused: []Count{{What: "no device of class " + gpus + " for request r and no device of class " + gpus, Nodes: 1}, {What: "not enough free " + request, Nodes: 1}}},
		{name: "no such class", spec: oneOf("none"), refused: none("no DeviceClass none")},
		{name: "no template", claim: "", refused: none("resource claim template own does not exist")},
		{name: "an older generation", spec: oneOf(gpus), copies: 2, limited: free(class, 2), change: func(d *Devices) {
			newer := aSlice("a1", "large")
			newer.Spec.Pool.Generation = 2
			d.Slices = append(d.Slices, newer)
		}, refused: without},
		{name: "an incomplete pool", spec: oneOf(gpus), copies: 1, limited: free(class, 1), refused: []Count{{What: "no device of class " + gpus, Nodes: 2}}, change: func(d *Devices) {
			d.Slices[0].Spec.Pool.ResourceSliceCount = 2
		}},
		{name: "a device twice", spec: oneOf(gpus), copies: 1, limited: free(class, 1), refused: []Count{{What: "no device of class " + gpus, Nodes: 2}}, change: func(d *Devices) {
			d.Slices[0].Spec.Devices[1].Name = "gpu-0"
		}},
		{name: "admin access of another claim", spec: oneOf(gpus), copies: 6, limited: append(cpu(1), free(class, 1)...), refused: without, change: func(d *Devices) {
			d.Claims[0].Status.Allocation.Devices.Results[0].AdminAccess = new(true)
		}},
		{name: "a tainted device", spec: oneOf(gpus), copies: 4, limited: cpu(1), refused: []Count{{What: "no device of class " + gpus, Nodes: 1}, {What: "not enough free " + class, Nodes: 1}}, change: firstDevice(func(device *resourcev1.Device) {
			device.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoExecute}}
		})},
		{name: "a DeviceTaintRule", spec: oneOf(gpus), copies: 1, limited: free(class, 1), refused: []Count{{What: "no device of class " + gpus, Nodes: 2}}, change: func(d *Devices) {
			d.TaintRules = []*resourcev1.DeviceTaintRule{{Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: &resourcev1.DeviceTaintSelector{Pool: new("a1")}, Taint: resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}, {}}
		}},
		{name: "a tolerated taint", copies: 5, limited: append(cpu(1), free(class, 1)...), refused: without, change: firstDevice(func(device *resourcev1.Device) {
			device.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}, {Key: "seen", Effect: resourcev1.DeviceTaintEffectNone}}
		}), spec: changed(oneOf(gpus), func(r *resourcev1.ExactDeviceRequest) {
			r.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
		})},
		{name: "a partitionable device", spec: oneOf(gpus), copies: 5, limited: append(cpu(1), free(class, 1)...), refused: without, atMost: []string{partitionable}, change: firstDevice(func(device *resourcev1.Device) {
			device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "memory"}}
		})},
		{name: "a pool with compatibility groups", spec: oneOf(gpus), copies: 5, limited: append(cpu(1), free(class, 1)...), refused: without, atMost: []string{partitionable}, change: func(d *Devices) {
			d.Slices[0].Spec.Devices[0].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "memory", CompatibilityGroups: []string{"a"}}}
		}},
		{name: "a consumable device", spec: oneOf(gpus), copies: 8, limited: cpu(2), refused: without, atMost: []string{consumable}, change: firstDevice(func(device *resourcev1.Device) {
			device.AllowMultipleAllocations = new(true)
		})},
		{name: "alternatives", copies: 12, limited: cpu(3), atMost: []string{"alternative requests for devices"}, spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{{DeviceClassName: gpus}}}},
		}}},
		{name: "all devices", copies: 5, limited: append(cpu(1), free(class, 1)...), refused: without, atMost: []string{"requests for all devices"}, spec: changed(oneOf(gpus), func(r *resourcev1.ExactDeviceRequest) {
			r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0
		})},
		{name: "admin access", copies: 12, limited: cpu(3), atMost: []string{"admin access to devices"}, spec: changed(oneOf(gpus), func(r *resourcev1.ExactDeviceRequest) { r.AdminAccess = new(true) })},
		{name: "requested capacity", copies: 5, limited: append(cpu(1), free(class, 1)...), refused: without, atMost: []string{"requested capacity of devices"}, spec: changed(oneOf(gpus), func(r *resourcev1.ExactDeviceRequest) {
			r.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}}
		})},
		{name: "a selector that fails", spec: oneOf(gpus, `device.attributes["gpu.example.com"].color == "red"`), refused: none("no device of class " + gpus + " for request r")},
		{name: "a selector that fails for some devices", spec: oneOf(gpus, `device.attributes["gpu.example.com"].model == "large" || device.attributes["gpu.example.com"].color == "red"`), copies: 2, limited: free(request, 1), atMost: []string{failingSelectors},
			refused: []Count{{What: "no device of class " + gpus + " for request r", Nodes: 1}, {What: "not enough free " + request, Nodes: 1}}},
		{name: "a selector of the future", spec: oneOf(gpus, `device.future`), copies: 5, limited: append(cpu(1), free(request, 1)...), atMost: []string{unknownSelectors},
			refused: []Count{{What: "no device of class " + gpus + " for request r", Nodes: 1}}},
		{name: "devices of any node", spec: oneOf(gpus), copies: 8, limited: free(class, 3), atMost: []string{devicesOfSomeNodes}, change: anyNode},
		{name: "no right to list slices", spec: oneOf(gpus), copies: 12, limited: cpu(3), atMost: []string{noRightTo("resourceslices")}, change: func(d *Devices) { d.Slices, d.Unread = nil, []string{"resourceslices"} }},
		{name: "no right to list claims", spec: oneOf(gpus), copies: 6, limited: append(cpu(1), free(class, 1)...), refused: without, atMost: []string{noRightTo("resourceclaims")}, change: func(d *Devices) {
			d.Claims, d.Unread = nil, []string{"resourceclaims"}
		}},
		{name: "no right to list templates", spec: oneOf(gpus), copies: 12, limited: cpu(3), atMost: []string{noRightTo("resourceclaimtemplates")}, change: func(d *Devices) {
			d.Templates, d.Unread = nil, []string{"resourceclaimtemplates"}
		}},

		{name: "a missing claim", claim: "none", refused: none("resource claim none does not exist")},
		{name: "a claim that is being deleted", claim: "used", refused: none("resource claim used is being deleted"), change: func(d *Devices) { d.Claims[0].DeletionTimestamp = new(metav1.Now()) }},
		{name: "a claim with a device", claim: "used", copies: 4, limited: cpu(1), refused: []Count{{What: "resource claim used: its devices are elsewhere", Nodes: 2}}},
		{name: "a claim with few consumers left", claim: "used", copies: 2, limited: []Count{{What: "consumers of resource claim used", Nodes: 1}}, refused: []Count{{What: "resource claim used: its devices are elsewhere", Nodes: 2}},
			change: func(d *Devices) {
				d.Claims[0].Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference, 254)
			}},
		{name: "a claim of all nodes with few consumers left", claim: "used", copies: 2, limited: []Count{{What: "consumers of resource claim used", Nodes: 3}}, change: func(d *Devices) {
			d.Claims[0].Status.ReservedFor, d.Claims[0].Status.Allocation.NodeSelector = make([]resourcev1.ResourceClaimConsumerReference, 254), nil
		}},
		{name: "a claim without consumers left", claim: "used", refused: none("resource claim used is in use by 256 pods"), change: func(d *Devices) {
			d.Claims[0].Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference, 256)
		}},
		{name: "a claim without a device yet", claim: "used", copies: 4, limited: []Count{{What: "resource claim used", Nodes: 2}}, refused: without, change: func(d *Devices) { d.Claims[0].Status = resourcev1.ResourceClaimStatus{} }},
		{name: "no right to read the claim", claim: "used", copies: 12, limited: cpu(3), atMost: []string{noRightTo("resourceclaims")}, change: func(d *Devices) { d.Claims, d.Unread = nil, []string{"resourceclaims"} }},
	}
}

// TestFitDevices counts the copies of a pod with a ResourceClaim on three nodes with 4 CPUs each.
func TestFitDevices(t *testing.T) {
	for _, c := range deviceFits() {
		t.Run(c.name, func(t *testing.T) {
			d, p := someDevices(), aPod("new", "", "", "", "cpu", "1")
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("own")}}
			if c.claim != "" {
				p.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: &c.claim}
			}
			if c.spec.Devices.Requests != nil {
				d.Templates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: c.spec}}}
			}
			if c.change != nil {
				c.change(d)
			}
			fit := New(threeNodes(), nil).WithDevices(d).Members([]string{"a1", "a2", "b1"}).Fit(&p)
			got := deviceFit{copies: fit.Copies, limited: fit.LimitedBy, refused: fit.Refused, atMost: fit.AtMost}
			equal(t, "copies", c.copies, got.copies)
			equal(t, "limited by", c.limited, got.limited)
			equal(t, "refused", c.refused, got.refused)
			equal(t, "at most", c.atMost, got.atMost)
		})
	}
}

// aPodWithOwnClaim returns a pending pod whose claim from a template has been created.
func aPodWithOwnClaim(d *Devices, name string) *corev1.Pod {
	p := aPod(name, "", "", "", "cpu", "1")
	p.UID = types.UID(name)
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("own")}}
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new(name + "-gpu")}}
	claim := aResourceClaim(name+"-gpu", "a1", 0)
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: name, UID: p.UID, Controller: new(true)}}
	d.Claims = append(d.Claims, claim)
	return &p
}

// TestClaimOfPendingPod checks that a pending pod whose own claim has a device fits only on the node
// of this device, that other pods with claims from the same template are in another group, and that
// a pod needs no device for a claim that was not necessary.
func TestClaimOfPendingPod(t *testing.T) {
	d := someDevices()
	has, waits, needsNone := aPodWithOwnClaim(d, "has"), aPodWithOwnClaim(d, "waits"), aPodWithOwnClaim(d, "without")
	d.Claims[2].Status = resourcev1.ResourceClaimStatus{}
	needsNone.Status.ResourceClaimStatuses[0].ResourceClaimName = nil
	needsNone.Spec.ResourceClaims[0].ResourceClaimTemplateName = new("other")
	c := New(threeNodes(), []*corev1.Pod{has, waits, needsNone}).WithDevices(d)
	groups := c.Pending()
	equal(t, "groups of pending pods", 3, len(groups))
	nodes := []string{"a1", "a2", "b1"}
	for _, of := range []struct {
		pod    *corev1.Pod
		copies int64
	}{{has, 1}, {waits, 4}, {needsNone, 12}} {
		fit := c.Members(nodes).Fit(of.pod)
		if fit.Copies != of.copies || len(fit.AtMost) > 0 {
			t.Errorf("%s: %d copies, at most because of %v, want %d", of.pod.Name, fit.Copies, fit.AtMost, of.copies)
		}
	}
}

// TestDevicesOnEmptyNode checks that devices of pods, but not those of DaemonSets, count as free on
// an empty node.
func TestDevicesOnEmptyNode(t *testing.T) {
	d := someDevices()
	d.Slices, d.Templates = d.Slices[1:], []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: oneOf(gpus, large)}}}
	for kind, want := range map[string]int64{"ReplicaSet": 1, "DaemonSet": 0} {
		user := aPod("user", kind, "user", "a2", "cpu", "1")
		user.UID = "user"
		p := aPod("new", "", "", "", "cpu", "1")
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("own")}}
		c := New(threeNodes(), []*corev1.Pod{&user}).WithDevices(d)
		fit := c.Members([]string{"a1", "a2", "b1"}).Fit(&p)
		if fit.Copies != 0 || fit.OnEmptyNode != want {
			t.Errorf("with the device of a pod of a %s, %d fit now and %d on an empty node, want 0 and %d", kind, fit.Copies, fit.OnEmptyNode, want)
		}
	}
}

// TestPreemptionWithDevices checks that preemption makes room for a pod with a claim if a device is
// free, and that the scheduler expects no devices from victims.
func TestPreemptionWithDevices(t *testing.T) {
	for request, evicts := range map[string]bool{large: false, "!(" + large + ")": true} {
		d, user, p := someDevices(), aPod("user", "ReplicaSet", "user", "a2", "cpu", "4"), aPod("new", "", "", "", "cpu", "1")
		user.UID = "user" // It has the large device.
		d.Templates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: oneOf(gpus, request)}}}
		p.Spec.Priority, p.Spec.ResourceClaims = new(int32(10)), []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("own")}}
		c := New(threeNodes()[1:2], []*corev1.Pod{&user}).WithDevices(d)
		if found := Preempt(c, &p, nil, nil); (found != nil) != evicts {
			t.Errorf("%s: the scheduler evicts a pod: %t, want %t", request, found != nil, evicts)
		}
	}
}

// TestDevicesOfNewNode checks that the devices of a node that does not exist yet are not known.
func TestDevicesOfNewNode(t *testing.T) {
	d, p := someDevices(), aPod("new", "", "", "", "cpu", "1")
	d.Templates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: oneOf(gpus)}}}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("own")}}
	added := aNode("new node", "cpu", "4", "pods", "10")
	fit := New(append(threeNodes(), &added), nil).WithDevices(d).Members([]string{"new node"}).Fit(&p)
	equal(t, "at most", []string{devicesOfNewNodes}, fit.AtMost)
	equal(t, "copies", int64(4), fit.Copies)
}

// TestExtendedResourceOfClass checks that an extended resource that a DeviceClass provides does not
// count as missing on the nodes.
func TestExtendedResourceOfClass(t *testing.T) {
	p := aPod("new", "", "", "", "cpu", "1", "example.com/gpu", "1")
	cluster := New(threeNodes(), nil)
	equal(t, "copies without devices", int64(0), cluster.Members([]string{"a1"}).Fit(&p).Copies)
	d := someDevices()
	equal(t, "copies without such a class", int64(0), cluster.WithDevices(d).Members([]string{"a1"}).Fit(&p).Copies)
	d.Classes[0].Spec.ExtendedResourceName = new("example.com/gpu")
	fit := cluster.WithDevices(d).Members([]string{"a1"}).Fit(&p)
	equal(t, "copies", int64(4), fit.Copies)
	equal(t, "at most", []string{"example.com/gpu of DeviceClass " + gpus}, fit.AtMost)
}

func TestDeviceCounts(t *testing.T) {
	d, nodes := someDevices(), threeNodes()
	d.Classes = append(d.Classes, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "all"}}, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "nic"}, Spec: resourcev1.DeviceClassSpec{Selectors: cel(`device.driver == "nic"`)}})
	d.Slices[0].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	d.Slices[0].Spec.Devices[1].AllowMultipleAllocations = new(true)
	counts := func(names ...string) *DeviceCounts { return New(nodes, nil).WithDevices(d).Members(names).Devices(nil) }
	equal(t, "devices", &DeviceCounts{Classes: []DeviceCount{{Class: "all", Devices: 5, Free: 3, NotEvaluated: 1}, {Class: gpus, Devices: 5, Free: 3, NotEvaluated: 1}}}, counts("a1", "a2", "b1"))
	nodes[0].Spec.Unschedulable = true
	equal(t, "devices of a cordoned node", &DeviceCounts{Classes: []DeviceCount{{Class: "all", Devices: 5, Free: 1, NotEvaluated: 1}, {Class: gpus, Devices: 5, Free: 1, NotEvaluated: 1}}}, counts("a1", "a2", "b1"))
	equal(t, "devices of a node without any", &DeviceCounts{}, counts("b1"))
	d.Unread = []string{"resourceclaims"}
	equal(t, "what is not evaluated", []string{noRightTo("resourceclaims")}, counts("a2").AtMost)
	d.Unread = []string{"resourceslices"}
	equal(t, "devices without the right to list them", (*DeviceCounts)(nil), counts("a2"))
}
