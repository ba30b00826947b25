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

// class is a set of pods that the scheduler treats alike.
type class struct {
	Shape
	key classKey
	// example is any pod of the class.
	example *corev1.Pod
	// compared is set once Unevaluated includes the anti-affinity of running pods.
	compared bool
	request  vector
	// size is the greatest share of the cluster's total that the request has, of any resource.
	size float64
	// unknown is a resource that is requested and that no node offers.
	unknown corev1.ResourceName
}

// classKey identifies a class: the pods of a controller with the same requests and constraints,
// which differ during a rollout. A pod without a controller is in a class of its own.
type classKey struct {
	owner                 types.UID
	requests, constraints string
}

// Keys remember the class of each pod between clusters, by the objects, which must not change: most
// of the work for a cluster is to find the classes. The zero value knows none.
type Keys struct{ of map[*corev1.Pod]classKey }

// classes are the classes of the pods of a cluster.
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

// of returns the class of a running pod, of which the key may be known. No class has the zero key.
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

// like returns the class of the pods that are added by an example.
func (c *classes) like(example *corev1.Pod, requests []resources.Amount) *class {
	known := c.byExample[example]
	if known == nil {
		known = c.create(example, requests)
		c.byExample[example] = known
	}
	return known
}

// create returns a new class of an example, which the classes do not keep.
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

// unevaluated names the constraints of a class that the scheduler evaluates and this package does
// not, with the anti-affinity of running pods.
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
	if !ofDaemonSet(object) { // Each of its pods is bound to a node of its own.
		key.constraints = constraintsOf(&object.Spec)
	}
	return key
}
