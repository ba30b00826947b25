// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Sums maps resources to running sums. A resource is removed from the map when all its added
// amounts have been subtracted again. It is kept if other amounts remain, even if their sum is 0.
type Sums map[corev1.ResourceName]Sum

// Sum is the running sum of a resource.
type Sum struct {
	Value int64
	// Count is the number of amounts that contribute to the sum.
	Count int
}

// Add adds each amount to the sum of its resource.
func (s *Sums) Add(amounts []Amount) {
	for _, a := range amounts {
		s.AddN(a, 1)
	}
}

// Subtract subtracts each amount, which was added before by [Sums.Add], from the sum of its
// resource.
func (s *Sums) Subtract(amounts []Amount) {
	for _, a := range amounts {
		s.SubtractN(a, 1)
	}
}

// AddN adds an amount n times to the sum of its resource.
func (s *Sums) AddN(a Amount, n int) { s.add(a.Resource, int64(n)*a.Value, n) }

// SubtractN subtracts an amount n times from the sum of its resource. The amount must have been
// added before by [Sums.AddN].
func (s *Sums) SubtractN(a Amount, n int) { s.add(a.Resource, -int64(n)*a.Value, -n) }

// AddSums adds other sums and their counts to s.
func (s *Sums) AddSums(other Sums) {
	for name, sum := range other {
		s.add(name, sum.Value, sum.Count)
	}
}

// SubtractSums subtracts other sums and their counts, which were added before by [Sums.AddSums].
func (s *Sums) SubtractSums(other Sums) {
	for name, sum := range other {
		s.add(name, -sum.Value, -sum.Count)
	}
}

func (s *Sums) add(name corev1.ResourceName, value int64, count int) {
	if *s == nil {
		*s = Sums{}
	}
	sum := (*s)[name]
	sum.Value += value
	sum.Count += count
	if sum.Count == 0 {
		delete(*s, name)
		return
	}
	(*s)[name] = sum
}

// List converts the sums to a resource list.
func (s Sums) List() corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, sum := range s {
		list[name] = quantity(name, sum.Value)
	}
	return list
}

// ListOf converts the sums of the named resources to a resource list. Resources without a sum get
// the quantity 0.
func (s Sums) ListOf(names []corev1.ResourceName) corev1.ResourceList {
	list := make(corev1.ResourceList, len(names))
	for _, name := range names {
		list[name] = quantity(name, s[name].Value)
	}
	return list
}

// Only returns a copy of the sums that is limited to the named resources.
func (s Sums) Only(names []corev1.ResourceName) Sums {
	some := make(Sums, len(names))
	for _, name := range names {
		if sum, ok := s[name]; ok {
			some[name] = sum
		}
	}
	return some
}

// inBytes reports whether a resource is counted in bytes.
func inBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func quantity(name corev1.ResourceName, value int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case inBytes(name):
		return *resource.NewQuantity(value, resource.BinarySI)
	default:
		return *resource.NewQuantity(value, resource.DecimalSI)
	}
}
