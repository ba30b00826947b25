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

// class is a set of pods that are alike to the scheduler.
type class struct {
	Shape
	key classKey
	// example is any pod of the class.
	example *corev1.Pod
	// compared is set once Unevaluated includes the anti-affinity of running pods.
	compared bool
	request  vector
	// size is the largest share of the cluster's total, over all resources, that a pod of the class requests.
	size float64
	// unknown is a requested resource that no node offers; empty if there is none.
	unknown corev1.ResourceName
}

// classKey identifies a class: pods of a controller with equal requests and constraints. During a rollout,
// the pods of a controller can have different constraints. A pod without a controller has a class of its own.
type classKey struct {
	owner                 types.UID
	requests, constraints string
}

// Keys caches the class keys of pods from one Cluster to the next, by pod object; the objects must not
// change. Computing the keys is most of the work of building a Cluster. The zero value is an empty cache.
type Keys struct{ of map[*corev1.Pod]classKey }

// classes has the classes of the pods of a cluster.
type classes struct {
	axes  *axes
	total vector // of all nodes

	byKey     map[classKey]*class
	byExample map[*corev1.Pod]*class
	// repels is the required anti-affinity of the pods in byKey.
	repels repels
}

func newClasses(a *axes, total vector) *classes {
	return &classes{axes: a, total: total, byKey: map[classKey]*class{}, byExample: map[*corev1.Pod]*class{}, repels: repels{}}
}

// of returns the class of a running pod. Its key is taken from keys if it is there. No class has the zero
// key.
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

// like returns the class of pods that are added by an example.
func (c *classes) like(example *corev1.Pod, requests []resources.Amount) *class {
	known := c.byExample[example]
	if known == nil {
		known = c.create(example, requests)
		c.byExample[example] = known
	}
	return known
}

// create returns a new class with an example, and does not add it to the classes.
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

// unevaluated lists the constraints of a class that the scheduler evaluates and this package does not,
// including the anti-affinity of running pods.
func (c *classes) unevaluated(of *class) []string {
	if !of.compared {
		of.compared = true
		if !slices.Contains(of.Unevaluated, ownAntiAffinity) && c.repels.matches(of.example) {
			of.Unevaluated = append(of.Unevaluated, othersAntiAffinity)
		}
	}
	return of.Unevaluated
}

// keyOf returns the key of the class of a pod with these requests.
func keyOf(object *corev1.Pod, requests []resources.Amount) classKey {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return classKey{}
	}
	key := classKey{owner: owner.UID, requests: fmt.Sprint(requests)}
	if !ofDaemonSet(object) { // Each pod of a DaemonSet is bound to its own node.
		key.constraints = constraintsOf(&object.Spec)
	}
	return key
}
