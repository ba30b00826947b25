// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Resources are counted as the scheduler counts them: whole numbers, cpu in
// thousandths and everything else in units, a fraction rounded up. Whole
// numbers can be taken off again exactly, which is what running sums rest on.

// amountLimit bounds what one pod or node counts for, so that no sum of what
// people may write into a pod overflows.
const amountLimit = int64(1) << 50

// amount is so much of one resource.
type amount struct {
	resource int // index into a registry
	value    int64
}

// registry numbers resource names, so that amounts need no maps.
type registry struct {
	names []corev1.ResourceName
	index map[corev1.ResourceName]int
}

func newRegistry() *registry {
	return &registry{index: map[corev1.ResourceName]int{}}
}

func (r *registry) number(name corev1.ResourceName) int {
	i, ok := r.index[name]
	if !ok {
		i = len(r.names)
		r.names = append(r.names, name)
		r.index[name] = i
	}
	return i
}

// amounts converts a resource list to amounts, in the order of their numbers.
func (r *registry) amounts(list corev1.ResourceList) []amount {
	out := make([]amount, 0, len(list))
	for name, quantity := range list {
		out = append(out, amount{r.number(name), count(name, quantity)})
	}
	slices.SortFunc(out, func(a, b amount) int { return cmp.Compare(a.resource, b.resource) })
	return out
}

// count returns what a quantity of a resource counts for. It is compared before
// it is converted: a quantity may be more than an int64 can hold, and comes out
// as anything then. What is negative counts for nothing.
func count(name corev1.ResourceName, q resource.Quantity) int64 {
	limit := amountLimit
	if name == corev1.ResourceCPU {
		limit /= 1000
	}
	switch {
	case q.Sign() <= 0:
		return 0
	case q.CmpInt64(limit) >= 0:
		return amountLimit
	case name == corev1.ResourceCPU:
		return q.MilliValue()
	default:
		return q.Value()
	}
}

// requests returns what a pod requests, the pod itself included. The options
// are those of the scheduler with the feature gates that are on by default.
func (r *registry) requests(pod *corev1.Pod) []amount {
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return r.amounts(list)
}

// terminal tells whether the pod has ended, so that it holds nothing of its
// node any more.
func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// sums are running sums by resource.
type sums []struct {
	value int64
	// terms is how many amounts went in: a resource is in the sum as long as
	// something reports it, be it 0.
	terms int
}

func (s *sums) add(amounts []amount)      { s.apply(amounts, +1) }
func (s *sums) subtract(amounts []amount) { s.apply(amounts, -1) }

func (s *sums) apply(amounts []amount, sign int) {
	for _, a := range amounts {
		for a.resource >= len(*s) {
			*s = append(*s, struct {
				value int64
				terms int
			}{})
		}
		(*s)[a.resource].value += int64(sign) * a.value
		(*s)[a.resource].terms += sign
	}
}

// addSums adds sums that were made elsewhere.
func (s *sums) addSums(other sums, sign int) {
	for i, o := range other {
		if o.terms == 0 {
			continue
		}
		s.apply([]amount{{i, o.value}}, sign)
		(*s)[i].terms += sign * (o.terms - 1)
	}
}

// list converts the sums to a resource list.
func (r *registry) list(s sums) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i, sum := range s {
		if sum.terms == 0 {
			continue
		}
		list[r.names[i]] = quantity(r.names[i], sum.value)
	}
	return list
}

func quantity(name corev1.ResourceName, value int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(value, resource.BinarySI)
	default:
		return *resource.NewQuantity(value, resource.DecimalSI)
	}
}

// percent returns requested as whole percent of allocatable, rounded down, for
// every resource of which something is allocatable: the water level.
func (r *registry) percent(requested, allocatable sums) map[corev1.ResourceName]int32 {
	level := map[corev1.ResourceName]int32{}
	for i, of := range allocatable {
		if of.value <= 0 {
			continue
		}
		var used int64
		if i < len(requested) {
			used = requested[i].value
		}
		// A product of two 64-bit numbers does not fit in one.
		p := new(big.Int).Mul(big.NewInt(used), big.NewInt(100))
		p.Div(p, big.NewInt(of.value))
		level[r.names[i]] = math.MaxInt32
		if p.IsInt64() && p.Int64() < math.MaxInt32 {
			level[r.names[i]] = int32(p.Int64())
		}
	}
	return level
}

// shapes keeps one copy of equal lists of amounts: most pods of a cluster
// request one of a few combinations.
type shapes map[string]*shape

type shape struct {
	amounts []amount
	key     string
	users   int
}

func (s shapes) take(amounts []amount) *shape {
	key := make([]byte, 0, len(amounts)*4)
	for _, a := range amounts {
		key = binary.AppendUvarint(key, uint64(a.resource))
		key = binary.AppendVarint(key, a.value)
	}
	known, ok := s[string(key)]
	if !ok {
		known = &shape{amounts: amounts, key: string(key)}
		s[known.key] = known
	}
	known.users++
	return known
}

func (s shapes) release(used *shape) {
	used.users--
	if used.users == 0 {
		delete(s, used.key)
	}
}
