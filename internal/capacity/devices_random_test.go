// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"tidekeeper.dev/tidekeeper/internal/kube/deviceselector"
)

// scheduled is the scheduler's own allocator of devices, with the features of a scheduler by
// default.
type scheduled struct {
	allocated structured.AllocatedState
	cache     *dracel.Cache
	*Devices
}

var schedulerFeatures = structured.Features{
	AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
	DeviceBindingAndStatus: true, ConsumableCapacity: true, FractionalCapacityRange: true,
}

// List and Get implement [structured.DeviceClassLister].
func (s *scheduled) List() ([]*resourcev1.DeviceClass, error) { return s.Classes, nil }

func (s *scheduled) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range s.Classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("no DeviceClass %s", name)
}

// place places one copy of a pod with a claim on a node. It returns false if the allocator finds no
// devices there. If the allocator fails, the scheduler may place the copy on no node.
func (s *scheduled) place(t *testing.T, n *corev1.Node, spec resourcev1.ResourceClaimSpec) (placed bool, failed error) {
	t.Helper()
	allocator, err := structured.NewAllocator(t.Context(), schedulerFeatures, s.allocated, s, s.Slices, s.cache)
	if err != nil {
		t.Fatal(err)
	}
	results, err := allocator.Allocate(context.Background(), n, []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: spec}})
	if err != nil || len(results) != 1 {
		return false, err
	}
	for _, r := range results[0].Devices.Results {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case r.AdminAccess != nil && *r.AdminAccess:
		case r.ShareID != nil:
			s.allocated.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
			s.allocated.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		default:
			s.allocated.AllocatedDevices.Insert(id)
		}
	}
	return true, nil
}

// copies places copies on the nodes, at most `most` on each, and returns their number. failed is an
// error of the allocator.
func (s *scheduled) copies(t *testing.T, nodes []*corev1.Node, most int, spec resourcev1.ResourceClaimSpec) (placed int64, failed error) {
	t.Helper()
	for _, n := range nodes {
		for range most {
			ok, err := s.place(t, n, spec)
			if err != nil {
				failed = err
			}
			if !ok {
				break
			}
			placed++
		}
	}
	return placed, failed
}

// deviceWorld makes random devices and claims.
type deviceWorld struct{ *rand.Rand }

func (w deviceWorld) chance(percent int) bool { return w.IntN(100) < percent }

// slices returns the ResourceSlices of a node: up to 4 devices in one pool, some of them with taints
// or shared counters, or that several claims can have.
func (w deviceWorld) slices(node string) []*resourcev1.ResourceSlice {
	models := make([]string, w.IntN(5))
	for i := range models {
		models[i] = []string{"large", "small"}[w.IntN(2)]
	}
	s := aSlice(node, models...)
	list := []*resourcev1.ResourceSlice{s}
	special := w.IntN(10)
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("16Gi")}}
		if w.chance(15) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: []resourcev1.DeviceTaintEffect{"NoSchedule", "NoExecute", "None"}[w.IntN(3)]}}
		}
		if w.chance(30) {
			d.Attributes["numa"] = resourcev1.DeviceAttribute{IntValue: new(int64(i % 2))}
		}
		switch special {
		case 0:
			d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "all", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("16Gi")}}}}
		case 1:
			d.AllowMultipleAllocations = new(true)
		}
	}
	if special == 0 {
		counters := aSlice(node)
		counters.Name, counters.Spec.SharedCounters = "counters", []resourcev1.CounterSet{{Name: "all", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("32Gi")}}}}
		s.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = 2, 2
		list = append(list, counters)
	}
	switch w.IntN(12) {
	case 0:
		s.Spec.Pool.ResourceSliceCount++ // The pool is incomplete.
	case 1:
		newer := aSlice(node, "large")
		newer.Spec.Pool.Generation++
		list = append(list, newer)
	case 2:
		s.Spec.NodeName, s.Spec.AllNodes = nil, new(true)
	}
	return list
}

// claim returns the spec of a claim with 1 or 2 requests.
func (w deviceWorld) claim() (s resourcev1.ResourceClaimSpec) {
	for i := range 1 + w.IntN(2) {
		r := &resourcev1.ExactDeviceRequest{DeviceClassName: gpus, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + w.IntN(3)/2)}
		if w.chance(50) {
			r.Selectors = cel([]string{large, `!(` + large + `)`, `device.attributes["gpu.example.com"].numa == 1`, `"numa" in device.attributes["gpu.example.com"]`}[w.IntN(4)])
		}
		if w.chance(20) {
			r.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists, Effect: []resourcev1.DeviceTaintEffect{"", "NoSchedule"}[w.IntN(2)]}}
		}
		request := resourcev1.DeviceRequest{Name: fmt.Sprint("r", i), Exactly: r}
		switch w.IntN(20) {
		case 0:
			r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0
		case 1:
			r.AdminAccess = new(true)
		case 2:
			r.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("8Gi")}}
		case 3:
			request.Exactly, request.FirstAvailable = nil, []resourcev1.DeviceSubRequest{
				{Name: "a", DeviceClassName: gpus, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}, {Name: "b", DeviceClassName: gpus, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
			}
		}
		s.Devices.Requests = append(s.Devices.Requests, request)
	}
	if w.chance(10) {
		s.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName("gpu.example.com/model"))}}
	}
	return s
}

// TestFitDevicesAsAllocated compares the number of copies of a pod with a claim in random clusters
// with the number that the scheduler's allocator of devices places, one after the other: it is equal,
// or not smaller if the number is an upper bound.
func TestFitDevicesAsAllocated(t *testing.T) {
	const perNode, worlds = 6, 3000
	cache, exact, positive := dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true}), 0, 0
	compiled := newInventory(&Devices{Compile: deviceselector.Compile})
	for seed := range uint64(worlds) {
		w := deviceWorld{rand.New(rand.NewPCG(seed, 1))}
		d := someDevices()
		d.Slices, d.Claims = nil, nil
		d.Compile = func(expression string) (func(string, *resourcev1.Device) (bool, error), error) {
			s := compiled.compile(expression)
			return s.matches, s.err
		}
		s := &scheduled{cache: cache, Devices: d, allocated: structured.AllocatedState{
			AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection(),
		}}
		var nodes []*corev1.Node
		var names []string
		for i := range 1 + w.IntN(3) {
			n := aNode(fmt.Sprint("n", i), "cpu", fmt.Sprint(perNode), "pods", "100")
			n.UID = types.UID(n.Name)
			nodes, names = append(nodes, &n), append(names, n.Name)
			d.Slices = append(d.Slices, w.slices(n.Name)...)
			if used := w.IntN(8); used < 4 {
				d.Claims = append(d.Claims, aResourceClaim(fmt.Sprint("used-", i), n.Name, used))
				s.allocated.AllocatedDevices.Insert(structured.MakeDeviceID(gpus, n.Name, fmt.Sprint("gpu-", used)))
			}
		}
		p, spec := aPod("new", "", "", "", "cpu", "1"), w.claim()
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("own")}}
		d.Templates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}}}
		fit := New(nodes, nil).WithDevices(d).Members(names).Fit(&p)
		placed, failed := s.copies(t, nodes, perNode, spec)
		if fit.Copies < placed || len(fit.AtMost) == 0 && (fit.Copies != placed || placed > 0 && failed != nil) {
			t.Errorf("seed %d: %d copies fit, at most because of %v, but the scheduler's allocator places %d: %v", seed, fit.Copies, fit.AtMost, placed, failed)
		}
		if len(fit.AtMost) == 0 {
			exact++
			if placed > 0 {
				positive++
			}
		}
	}
	t.Logf("%d of %d numbers are exact, of which %d are not 0", exact, worlds, positive)
	if exact < worlds/3 || positive < worlds/10 {
		t.Errorf("only %d of %d numbers are exact, of which %d are not 0", exact, worlds, positive)
	}
}
