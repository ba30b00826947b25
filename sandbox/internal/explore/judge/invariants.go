// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// brokenInvariants returns a problem for each violation of a built-in invariant or of an invariant
// in `own`, which lists the workload's invariants. The same violation is reported only once.
// `resources` lists the names of all recorded resources.
func brokenInvariants(own []workload.Invariant, versions []observe.Version, resources ...string) []Problem {
	return BrokenSince(time.Time{}, own, versions, resources...)
}

// BrokenSince returns a problem for each violation of a built-in invariant or of an invariant in
// `own`. It ignores violations before the time `began`, and those that may only seem to be violations
// because the recorder missed versions of other objects. `resources` lists the names of all recorded
// resources.
func BrokenSince(began time.Time, own []workload.Invariant, versions []observe.Version, resources ...string) []Problem {
	var problems []Problem
	told := map[string]bool{}
	tell := func(v *observe.Version, text string) {
		if !told[text] && !v.Time.Before(began) && !v.InGap {
			told[text] = true
			problems = append(problems, Problem{Oracle: Broken, Lines: []string{text}, At: v.Time})
		}
	}
	owners := newOwners()
	rules := []func(*observe.Version) string{newPodCounter().saw, owners.taken, surge{}.saw, newClaims(owners).saw}
	all := everything{}
	for _, resource := range resources {
		all[resource] = map[types.UID]any{}
	}
	for i := range versions {
		v := &versions[i]
		owners.saw(v)
		all.saw(v)
		for _, saw := range rules {
			if text := saw(v); text != "" {
				tell(v, text)
			}
		}
		for j := range own {
			rule := &own[j]
			if !observe.ResourceIs(v.Resource, rule.Resource) || rule.Deleted != (v.Type == watch.Deleted) {
				continue
			}
			var old map[string]any
			if v.Old != nil {
				old = v.Old.Object
			}
			if is, why := rule.Condition.HoldsWith(v.Object.Object, old, map[string]any{workload.ObjectsVariable: all.lists}); !is {
				text := fmt.Sprintf("%s: %s does not hold", v.Key(), rule.Name)
				if why != "" {
					text += " (" + why + ")"
				}
				tell(v, text)
			}
		}
	}
	return problems
}

// everything maps each resource to its existing objects by UID.
type everything map[string]map[types.UID]any

func (e everything) saw(v *observe.Version) {
	if e[v.Resource] == nil {
		e[v.Resource] = map[types.UID]any{}
	}
	e[v.Resource][v.Object.GetUID()] = v.Object.Object
	if v.Type == watch.Deleted {
		delete(e[v.Resource], v.Object.GetUID())
	}
}

// lists returns the objects as a list per resource, for CEL expressions. It is called only for
// expressions that use ObjectsVariable.
func (e everything) lists() any {
	lists := make(map[string]any, len(e))
	for resource, objects := range e {
		lists[resource] = slices.Collect(maps.Values(objects))
	}
	return lists
}

// podCounter counts the pods of owners that have spec.replicas.
type podCounter struct {
	// wanted maps the UID of each owner to the largest number of replicas that the owner has ever
	// requested. Smaller numbers do not count, because the controller may notice them late.
	wanted map[types.UID]int64
	// active maps the UID of each owner to the set of UIDs of its active pods. owners maps the UID
	// of each pod to the UID of its current owner; a pod can be released by its owner and adopted
	// by another.
	active map[types.UID]map[types.UID]bool
	owners map[types.UID]types.UID
}

func newPodCounter() *podCounter {
	return &podCounter{wanted: map[types.UID]int64{}, active: map[types.UID]map[types.UID]bool{}, owners: map[types.UID]types.UID{}}
}

// replicated lists the resources whose objects never have more pods than replicas.
var replicated = []string{"replicasets.apps", "statefulsets.apps", "replicationcontrollers"}

// saw records an object version. If the version adds a pod beyond the largest number of replicas
// that the pod's owner has ever requested, saw returns a description of this violation. Otherwise,
// it returns "".
func (c *podCounter) saw(v *observe.Version) string {
	if slices.Contains(replicated, v.Resource) {
		c.wanted[v.Object.GetUID()] = max(replicasOf(v.Object), c.wanted[v.Object.GetUID()])
		return ""
	}
	if v.Resource != "pods" {
		return ""
	}
	owner, uid := metav1.GetControllerOf(v.Object), v.Object.GetUID()
	if before, had := c.owners[uid]; had && (owner == nil || owner.UID != before) {
		delete(c.active[before], uid)
		delete(c.owners, uid)
	}
	if owner == nil {
		return ""
	}
	c.owners[uid] = owner.UID
	active := c.active[owner.UID]
	if active == nil {
		active = map[types.UID]bool{}
		c.active[owner.UID] = active
	}
	phase, _, _ := unstructured.NestedString(v.Object.Object, "status", "phase")
	if v.Type == watch.Deleted || v.Object.GetDeletionTimestamp() != nil || phase == "Failed" || phase == "Succeeded" {
		delete(active, uid)
		return ""
	}
	isNew := !active[uid]
	active[uid] = true
	wanted, known := c.wanted[owner.UID]
	if isNew && known && int64(len(active)) > wanted {
		return fmt.Sprintf("%s %s/%s has more pods than the %d replicas that it ever asked for", owner.Kind, v.Object.GetNamespace(), owner.Name, wanted)
	}
	return ""
}

// owners tracks existing objects and their controllers.
type owners struct {
	// objects holds the existing objects by UID. controllers maps the UIDs of objects, including
	// deleted objects, to the UIDs of their controllers.
	objects     map[types.UID]*unstructured.Unstructured
	controllers map[types.UID]types.UID
}

func newOwners() *owners {
	return &owners{objects: map[types.UID]*unstructured.Unstructured{}, controllers: map[types.UID]types.UID{}}
}

func (o *owners) saw(v *observe.Version) {
	uid := v.Object.GetUID()
	if owner := metav1.GetControllerOf(v.Object); owner != nil {
		o.controllers[uid] = owner.UID
	} else {
		delete(o.controllers, uid)
	}
	if o.objects[uid] = v.Object; v.Type == watch.Deleted {
		delete(o.objects, uid)
	}
}

// stays reports whether an object exists and will continue to exist: neither the object nor any of
// its direct or indirect controllers has been deleted or is being deleted.
func (o *owners) stays(uid types.UID) bool {
	for seen := 0; ; seen++ {
		object := o.objects[uid]
		if object == nil || object.GetDeletionTimestamp() != nil {
			return false
		}
		owner, has := o.controllers[uid]
		if !has || seen > len(o.objects) { // The second condition ends the loop if controllers form a cycle.
			return true
		}
		uid = owner
	}
}

// taken returns a description of the violation if an object's controller changes while the former
// controller still exists, and otherwise "". It permits a controller to pass the object to another
// object that it controls, and to take the object back. A StatefulSet does this with a
// PersistentVolumeClaim that is to be deleted together with a pod.
func (o *owners) taken(v *observe.Version) string {
	if v.Old == nil || v.Type == watch.Deleted {
		return ""
	}
	before, now := metav1.GetControllerOf(v.Old), metav1.GetControllerOf(v.Object)
	if before == nil || now == nil || before.UID == now.UID || o.objects[before.UID] == nil ||
		o.controllers[now.UID] == before.UID || o.controllers[before.UID] == now.UID {
		return ""
	}
	return fmt.Sprintf("%s was taken from %s %s, which still exists, by %s %s", v.Key(), before.Kind, before.Name, now.Kind, now.Name)
}

// surge tracks the rollouts of Deployments, by the Deployment's UID. The ReplicaSets of a
// Deployment must never have more replicas in total than the Deployment's replicas plus maxSurge.
type surge map[types.UID]*rollout

// rollout holds the permitted total number of replicas of a Deployment's ReplicaSets, and the
// current number of each ReplicaSet.
type rollout struct {
	// deployment is the Deployment as NAMESPACE/NAME. It is empty until the Deployment is seen.
	deployment string
	// most is the largest value that the Deployment's replicas plus maxSurge have had. Later
	// decreases do not count, because the controller may notice them late.
	most int64
	// asked maps the UIDs of the Deployment's ReplicaSets to their spec.replicas.
	asked map[types.UID]int64
}

// of returns a Deployment's rollout. It creates the rollout if a ReplicaSet is seen before its
// Deployment.
func (s surge) of(deployment types.UID) *rollout {
	if s[deployment] == nil {
		s[deployment] = &rollout{asked: map[types.UID]int64{}}
	}
	return s[deployment]
}

// saw records an object version. It returns a description of the violation if a ReplicaSet grows
// although its Deployment's ReplicaSets exceed the replicas plus maxSurge in total. Otherwise, it
// returns "".
func (s surge) saw(v *observe.Version) string {
	switch v.Resource {
	case "deployments.apps":
		of := s.of(v.Object.GetUID())
		of.deployment = v.Object.GetNamespace() + "/" + v.Object.GetName()
		of.most = max(of.most, replicasAndSurge(v.Object))
	case "replicasets.apps":
		owner, uid := metav1.GetControllerOf(v.Object), v.Object.GetUID()
		for deployment, of := range s {
			if owner == nil || owner.UID != deployment {
				delete(of.asked, uid) // The ReplicaSet has lost its controller or was adopted by another one.
			}
		}
		if owner == nil {
			return ""
		}
		of := s.of(owner.UID)
		before := of.asked[uid]
		if delete(of.asked, uid); v.Type == watch.Deleted {
			return ""
		}
		of.asked[uid] = replicasOf(v.Object)
		sum := int64(0)
		for _, replicas := range of.asked {
			sum += replicas
		}
		if of.deployment != "" && of.asked[uid] > before && sum > of.most {
			return fmt.Sprintf("Deployment %s has ReplicaSets for more pods than the %d replicas and surge that it ever asked for", of.deployment, of.most)
		}
	}
	return ""
}

// replicasAndSurge returns a Deployment's maximum number of pods during a rollout.
func replicasAndSurge(object *unstructured.Unstructured) int64 {
	replicas := replicasOf(object)
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil || d.Spec.Strategy.RollingUpdate == nil {
		return replicas
	}
	more, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0)), int(replicas), true)
	if err != nil {
		return replicas
	}
	return replicas + int64(more)
}

// replicasOf returns an object's spec.replicas, which defaults to 1.
func replicasOf(object *unstructured.Unstructured) int64 {
	replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return replicas
}

// claims detects the deletion of PersistentVolumeClaims that are in use, because a pod mounts the
// claim or because a StatefulSet has a matching claim template. Pods and StatefulSets that are
// about to be deleted themselves do not count.
type claims struct {
	owners *owners
	// users maps each namespace to the UIDs of its StatefulSets and pods.
	users map[string]map[types.UID]bool
}

func newClaims(o *owners) claims { return claims{o, map[string]map[types.UID]bool{}} }

// saw records an object version. It returns a description of the violation if the deletion of a
// PersistentVolumeClaim begins while the claim is in use, and otherwise "".
func (c claims) saw(v *observe.Version) string {
	namespace := v.Object.GetNamespace()
	switch v.Resource {
	case "statefulsets.apps", "pods":
		if c.users[namespace] == nil {
			c.users[namespace] = map[types.UID]bool{}
		}
		if c.users[namespace][v.Object.GetUID()] = true; v.Type == watch.Deleted {
			delete(c.users[namespace], v.Object.GetUID())
		}
	case "persistentvolumeclaims":
		begun := v.Old != nil && v.Old.GetDeletionTimestamp() != nil
		if v.Type != watch.Deleted && v.Object.GetDeletionTimestamp() == nil || begun {
			return ""
		}
		if owner, has := c.owners.controllers[v.Object.GetUID()]; has && !c.owners.stays(owner) {
			return ""
		}
		var wanted []string
		for uid := range c.users[namespace] {
			if user := c.owners.objects[uid]; c.owners.stays(uid) && wants(user, v.Object.GetName()) {
				wanted = append(wanted, user.GetKind()+" "+user.GetName())
			}
		}
		if len(wanted) > 0 {
			return fmt.Sprintf("%s is deleted, though %s wants it", v.Key(), slices.Max(wanted))
		}
	}
	return ""
}

// wants reports whether the Pod or StatefulSet `user` needs a PersistentVolumeClaim: an active Pod
// mounts the claim, or the claim's name belongs to a current ordinal of the StatefulSet.
func wants(user *unstructured.Unstructured, claim string) bool {
	if user.GetKind() == "Pod" {
		volumes, _, _ := unstructured.NestedSlice(user.Object, "spec", "volumes")
		phase, _, _ := unstructured.NestedString(user.Object, "status", "phase")
		return phase != "Failed" && phase != "Succeeded" && slices.ContainsFunc(volumes, func(volume any) bool {
			fields, _ := volume.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "persistentVolumeClaim", "claimName")
			return name == claim
		})
	}
	templates, _, _ := unstructured.NestedSlice(user.Object, "spec", "volumeClaimTemplates")
	first, _, _ := unstructured.NestedInt64(user.Object, "spec", "ordinals", "start")
	return slices.ContainsFunc(templates, func(template any) bool {
		fields, _ := template.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "metadata", "name")
		rest, is := strings.CutPrefix(claim, name+"-"+user.GetName()+"-")
		ordinal, err := strconv.ParseInt(rest, 10, 64)
		return is && err == nil && ordinal >= first && ordinal < first+replicasOf(user)
	})
}
