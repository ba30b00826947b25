// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// class is a set of pods with equal requests and constraints, which the scheduler treats alike.
type class struct {
	Shape
	key classKey
	// example is an arbitrary pod of the class.
	example *corev1.Pod
	// compared is true once Unevaluated includes the effects of running pods' anti-affinity.
	compared bool
	request  vector
	// size measures a pod of the class: it is the largest of the pod's shares of the cluster's
	// allocatable resources.
	size float64
	// unknown is a requested resource that no node offers, or empty if there is none.
	unknown corev1.ResourceName
}

// classKey identifies a class of pods by their controller, requests and constraints, which can
// differ between pods of the same controller during a rollout. The key of a pod without a
// controller is zero: each such pod has its own class.
type classKey struct {
	owner                 types.UID
	requests, constraints string
}

// Keys caches the class keys of pods, keyed by pod object, for the construction of several
// Clusters. Computing the keys is most of the work of building a Cluster. The pod objects must not
// be modified. The zero value is an empty cache.
type Keys struct{ of map[*corev1.Pod]classKey }

// classes holds the classes of the pods of a cluster.
type classes struct {
	axes  *axes
	total vector // sum of the allocatable resources of all nodes

	byKey     map[classKey]*class
	byExample map[*corev1.Pod]*class
	// repels holds the required anti-affinity terms of the running pods.
	repels repels
}

func newClasses(a *axes, total vector) *classes {
	return &classes{axes: a, total: total, byKey: map[classKey]*class{}, byExample: map[*corev1.Pod]*class{}, repels: repels{}}
}

// of returns the class of a running pod. If keys does not contain the pod's class key, the key is
// computed: the zero key of a missing pod is never in byKey.
func (c *classes) of(object *corev1.Pod, keys map[*corev1.Pod]classKey) *class {
	if known := c.byKey[keys[object]]; known != nil {
		return known
	}
	requests := resources.Requests(object)
	key := keyOf(object, requests)
	if known := c.byKey[key]; known != nil {
		return known
	}
	created := c.create(object, requests)
	created.key = key
	c.repels.add(object)
	if key != (classKey{}) {
		c.byKey[key] = created
	}
	return created
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
	created := &class{Shape: ShapeOf(example), example: example}
	created.request, created.unknown = c.axes.vectorOf(requests)
	for i, r := range created.request {
		if c.total[i] > 0 {
			created.size = max(created.size, float64(r)/float64(c.total[i]))
		}
	}
	return created
}

// unevaluated lists the constraints that the scheduler evaluates for pods of the class but this
// package does not, including the effects of running pods' anti-affinity.
func (c *classes) unevaluated(of *class) []string {
	if !of.compared {
		of.compared = true
		if !slices.Contains(of.Unevaluated, ownAntiAffinity) && c.repels.matches(of.example) {
			of.Unevaluated = append(of.Unevaluated, othersAntiAffinity)
		}
	}
	return of.Unevaluated
}

// keyOf returns the class key of a pod with the given requests.
func keyOf(object *corev1.Pod, requests []resources.Amount) classKey {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return classKey{}
	}
	key := classKey{owner: owner.UID, requests: fmt.Sprint(requests)}
	if !ofDaemonSet(object) { // DaemonSet pods have different constraints, because each is bound to its own node.
		key.constraints = constraintsOf(&object.Spec)
	}
	return key
}
