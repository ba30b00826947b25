// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// class is a set of pods with equal requests and constraints, which the scheduler treats alike.
type class struct {
	Shape
	// key is nil for a pod without a controller.
	key *classKey
	// example is an arbitrary pod of the class.
	example *corev1.Pod
	// rules holds the constraints between pods of the class and other pods; nil if there are none.
	// It is valid once ruled is true, which classes.rulesOf sets.
	rules *rules
	ruled bool
	// terms holds the anti-affinity terms of pods of the class. It is valid once parsed is true,
	// which class.carries sets.
	terms   []term
	parsed  bool
	request vector
	// size is the request of a pod of the class as a fraction of the cluster's allocatable amount,
	// for the resource with the largest fraction. Larger pods are placed first.
	size float64
	// unknown is a requested resource that no node offers, or empty if there is none.
	unknown corev1.ResourceName
	// ofDaemonSet is true if a DaemonSet controls the pods of the class.
	ofDaemonSet bool
}

// classKey identifies a class of pods by their controller, requests and constraints, which can
// differ between pods of the same controller during a rollout. Each pod without a controller has its
// own class.
//
// Users can write any controller into a pod. So the UID alone does not identify it: otherwise, a pod
// with the UID of a DaemonSet in another namespace would share the class of its pods.
type classKey struct {
	namespace, kind, name string
	owner                 types.UID
	requests, constraints string
}

// Keys caches the class keys of pods, keyed by pod object, for the construction of several
// Clusters. Computing the keys is most of the work of building a Cluster. The pod objects must not
// be modified. The zero value is an empty cache.
type Keys struct{ of map[*corev1.Pod]*classKey }

// classes holds the classes of the pods of a cluster.
type classes struct {
	axes  *axes
	total vector // sum of the allocatable resources of all nodes

	byKey     map[classKey]*class
	byExample map[*corev1.Pod]*class
	relations *relations
	// storage holds the storage objects; nil if constraints on volumes are not evaluated.
	storage *storage
	// devices holds the devices; nil if constraints on devices are not evaluated.
	devices *inventory
}

func newClasses(a *axes, total vector, list []*node) *classes {
	return &classes{axes: a, total: total, byKey: map[classKey]*class{}, byExample: map[*corev1.Pod]*class{}, relations: newRelations(list)}
}

// of returns the class of a running pod. It takes the pod's class key from `keys`, or computes the
// key if `keys` does not contain the pod.
func (c *classes) of(object *corev1.Pod, keys map[*corev1.Pod]*classKey) *class {
	if key := keys[object]; key != nil {
		if known := c.byKey[*key]; known != nil {
			return known
		}
	}
	requests := resources.Requests(object)
	key := keyOf(object, requests)
	if key == nil {
		return c.create(object, requests)
	}
	known := c.byKey[*key]
	if known == nil {
		known = c.create(object, requests)
		known.key = key
		c.byKey[*key] = known
	}
	return known
}

// like returns the class shared by all pods that [Cluster.Add] adds with the given example.
func (c *classes) like(example *corev1.Pod, requests []resources.Amount) *class {
	known := c.byExample[example]
	if known == nil {
		known = c.create(example, requests)
		c.byExample[example] = known
	}
	return known
}

// create returns a new class for pods like the example, without adding the class to c.
func (c *classes) create(example *corev1.Pod, requests []resources.Amount) *class {
	created := &class{Shape: ShapeOf(example), example: example, ofDaemonSet: pods.IsOfDaemonSet(example)}
	created.request, created.unknown = c.axes.vectorOf(requests)
	for i, r := range created.request {
		if c.total[i] > 0 {
			created.size = max(created.size, float64(r)/float64(c.total[i]))
		}
	}
	return created
}

// rulesOf returns the constraints between pods of the class and other pods; nil if there are none.
func (c *classes) rulesOf(of *class) *rules {
	if !of.ruled {
		of.rules, of.ruled = c.relations.rulesOf(of.example), true
	}
	return of.rules
}

// unevaluated lists the constraints that the scheduler evaluates for pods of the class but this
// package does not.
func (c *classes) unevaluated(of *class) []string {
	if rules := c.rulesOf(of); rules != nil {
		return slices.Concat(of.Unevaluated, rules.unevaluated)
	}
	return of.Unevaluated
}

// carries returns the anti-affinity terms of a pod of the class. They are parsed once, as pods of a
// class have the same namespace and affinity.
func (c *class) carries(p *corev1.Pod) []term {
	if !c.parsed {
		c.terms, c.parsed = newTerms(p, antiAffinityOf(p)), true
	}
	return c.terms
}

// keyOf returns the class key of a pod with the given requests; nil for a pod without a controller.
func keyOf(object *corev1.Pod, requests []resources.Amount) *classKey {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return nil
	}
	key := &classKey{namespace: object.Namespace, kind: owner.Kind, name: owner.Name, owner: owner.UID, requests: fmt.Sprint(requests)}
	if !pods.IsOfDaemonSet(object) { // DaemonSet pods have different constraints, because each is bound to its own node.
		key.constraints = constraintsOf(&object.Spec)
	}
	return key
}
