// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// deviceDemand holds the constraints of a pod's ResourceClaims.
type deviceDemand struct {
	inventory *inventory
	// never lists the reasons why no node accepts the pod, such as a missing claim.
	never []string
	// places restrict the nodes that accept the pod, because a claim has its devices already.
	places   []place
	requests []deviceRequest
	// most is the number of further pods that can use the pod's claims, and mostOf names the claim
	// that limits it. most is [math.MaxInt64] if nothing limits it.
	most   int64
	mostOf string
	// waiting lists the names of the claims that copies share and that have no devices yet: the
	// copies must run where the first one is placed.
	waiting []string
	// unevaluated lists the constraints on the pod's devices that are not evaluated.
	unevaluated []string
	// key is equal for pods whose claims have the same constraints.
	key string
}

// deviceRequest is a request of a claim for a number of devices.
type deviceRequest struct {
	// what describes the wanted devices, such as "device of class gpu.example.com".
	what        string
	selectors   []*deviceSelector
	tolerations []resourcev1.DeviceToleration
	count       int64
	// own is true if each copy of the pod has a claim with this request, and false if all copies
	// share the claim.
	own bool
}

// demandOf returns the constraints of a pod's ResourceClaims, or nil if there are none. It returns
// nil if i is nil.
func (i *inventory) demandOf(object *corev1.Pod) *deviceDemand {
	if i == nil || len(object.Spec.ResourceClaims) == 0 {
		return nil
	}
	d := &deviceDemand{inventory: i, most: math.MaxInt64}
	for k := range object.Spec.ResourceClaims {
		switch claim := &object.Spec.ResourceClaims[k]; {
		case claim.ResourceClaimName != nil:
			d.addNamed(object, *claim.ResourceClaimName)
		case claim.ResourceClaimTemplateName != nil:
			d.addOwn(object, claim)
		default:
			d.lacks(resourceClaims)
		}
	}
	return d
}

// lacks adds names of constraints that are not evaluated.
func (d *deviceDemand) lacks(what ...string) { d.unevaluated = appendNew(d.unevaluated, what) }

// unread reports whether the user is not allowed to list a resource. The constraints on devices are
// then not fully evaluated.
func (d *deviceDemand) unread(resource string) bool {
	if !d.inventory.unread.Has(resource) {
		return false
	}
	d.lacks(noRightTo(resource))
	return true
}

// noRightTo names the resource that a user may not list, as a constraint that is not evaluated.
func noRightTo(resource string) string { return "devices (no right to list " + resource + ")" }

func (d *deviceDemand) addKey(parts ...string) { d.key += "\x00" + strings.Join(parts, "\x00") }

// addNamed adds the constraints of a claim that all copies of the pod share.
func (d *deviceDemand) addNamed(pod *corev1.Pod, name string) {
	d.addKey("claim", name)
	if d.unread("resourceclaims") {
		return
	}
	what, claim := "resource claim "+name, d.inventory.claims[keyOfClaim(pod.Namespace, name)]
	switch {
	case claim == nil:
		d.never = append(d.never, what+" does not exist")
		return
	case !claim.DeletionTimestamp.IsZero():
		d.never = append(d.never, what+" is being deleted")
		return
	}
	reserved := slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return pod.UID != "" && r.UID == pod.UID
	})
	left := int64(resourcev1.ResourceClaimReservedForMaxSize - len(claim.Status.ReservedFor))
	switch {
	case left > 0:
	case reserved:
		left = 1
	default:
		d.never = append(d.never, fmt.Sprintf("%s is in use by %d pods", what, len(claim.Status.ReservedFor)))
		return
	}
	if left < d.most {
		d.most, d.mostOf = left, "consumers of "+what
	}
	if claim.Status.Allocation != nil {
		d.addAllocated(what, claim)
		return
	}
	d.waiting = append(d.waiting, what)
	d.addSpec(&claim.Spec, false)
}

// addOwn adds the constraints of a claim that is created for the pod from a template. A pod that
// exists already may have its claim.
func (d *deviceDemand) addOwn(pod *corev1.Pod, of *corev1.PodResourceClaim) {
	d.addKey("template", *of.ResourceClaimTemplateName)
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.Name != of.Name {
			continue
		}
		if status.ResourceClaimName == nil {
			return // The pod needs no claim.
		}
		if d.unread("resourceclaims") {
			return
		}
		claim := d.inventory.claims[keyOfClaim(pod.Namespace, *status.ResourceClaimName)]
		if claim == nil || !claim.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(claim, pod) {
			break // The next claim is created from the template.
		}
		if claim.Status.Allocation == nil {
			d.addSpec(&claim.Spec, true)
			return
		}
		d.addKey(claim.Name)
		d.most, d.mostOf = 1, "resource claim "+claim.Name
		d.addAllocated(d.mostOf, claim)
		return
	}
	if d.unread("resourceclaimtemplates") {
		return
	}
	template := d.inventory.templates[keyOfClaim(pod.Namespace, *of.ResourceClaimTemplateName)]
	if template == nil {
		d.never = append(d.never, fmt.Sprintf("resource claim template %s does not exist", *of.ResourceClaimTemplateName))
		return
	}
	d.addSpec(&template.Spec.Spec, true)
}

// addAllocated adds the constraint that a claim with devices is usable on some nodes only.
func (d *deviceDemand) addAllocated(what string, claim *resourcev1.ResourceClaim) {
	for k := range claim.Status.Allocation.Devices.Results {
		if len(claim.Status.Allocation.Devices.Results[k].BindingConditions) > 0 {
			d.lacks(bindingConditions)
		}
	}
	if selector := claim.Status.Allocation.NodeSelector; selector != nil {
		d.places = append(d.places, place{why: what + ": its devices are elsewhere", admits: selectedBy(selector), key: selector.String()})
	}
}

// addSpec adds the requests of a claim without devices. `own` is true if each copy of the pod has
// such a claim.
func (d *deviceDemand) addSpec(spec *resourcev1.ResourceClaimSpec, own bool) {
	if len(spec.Devices.Constraints) > 0 {
		d.lacks("constraints between devices")
	}
	slicesUnread, classesUnread := d.unread("resourceslices"), d.unread("deviceclasses")
	d.unread("resourceclaims")
	d.unread("devicetaintrules")
	if slicesUnread || classesUnread {
		return
	}
	total := int64(0)
	for k := range spec.Devices.Requests {
		request := &spec.Devices.Requests[k]
		if request.Exactly == nil {
			d.lacks("alternative requests for devices")
			d.checkClasses(request.FirstAvailable)
			continue
		}
		total += min(request.Exactly.Count, tooManyDevices)
		d.addRequest(request.Name, request.Exactly, own)
	}
	if total >= tooManyDevices {
		d.never = appendNew(d.never, []string{fmt.Sprintf("more than %d devices in a resource claim", tooManyDevices-1)})
	}
}

// tooManyDevices is the smallest number of devices that the scheduler refuses to allocate for one
// claim.
const tooManyDevices = resourcev1.AllocationResultsMaxSize + 1

// checkClasses adds the reason why no node accepts the pod if a DeviceClass of one of several
// alternative requests is missing. As in the scheduler, all of them must exist.
func (d *deviceDemand) checkClasses(alternatives []resourcev1.DeviceSubRequest) {
	for k := range alternatives {
		if name := alternatives[k].DeviceClassName; d.inventory.classes[name] == nil {
			d.never = appendNew(d.never, []string{"no DeviceClass " + name})
		}
	}
}

// addRequest adds a request for a number of devices. Of a request that is not evaluated, it adds a
// part that must be satisfied in any case.
func (d *deviceDemand) addRequest(name string, request *resourcev1.ExactDeviceRequest, own bool) {
	class := d.inventory.classes[request.DeviceClassName]
	switch {
	case class == nil:
		d.never = appendNew(d.never, []string{"no DeviceClass " + request.DeviceClassName})
		return
	case ptr.Deref(request.AdminAccess, false):
		d.lacks("admin access to devices")
		return
	case len(request.DerivedAttributes) > 0:
		d.lacks("derived attributes of devices")
		return
	}
	r := deviceRequest{what: "device of class " + class.Name, tolerations: request.Tolerations, count: min(max(1, request.Count), tooManyDevices), own: own}
	if request.AllocationMode == resourcev1.DeviceAllocationModeAll {
		d.lacks("requests for all devices")
		r.count = 1
	}
	if request.Capacity != nil {
		d.lacks("requested capacity of devices")
	}
	if len(request.Selectors) > 0 {
		r.what += " for request " + name
	}
	r.selectors = d.selectorsOf(slices.Concat(class.Spec.Selectors, request.Selectors))
	d.requests = append(d.requests, r)
}

// selectorsOf compiles selectors. It leaves out those that this version of the library does not
// know, so that too many devices match.
func (d *deviceDemand) selectorsOf(selectors []resourcev1.DeviceSelector) (list []*deviceSelector) {
	for _, selector := range selectors {
		if selector.CEL == nil {
			d.lacks(unknownSelectors)
			continue
		}
		compiled := d.inventory.compile(selector.CEL.Expression)
		if compiled.err != nil {
			d.lacks(unknownSelectors)
			continue
		}
		list = append(list, compiled)
	}
	return list
}
