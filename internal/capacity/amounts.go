// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// axes is the ordered list of the resources that a cluster's nodes offer: CPU, memory, then other
// resources by name. Each element of a vector is the amount of the resource at the same index, in
// the units of [resources.Amount].
type axes struct {
	names []corev1.ResourceName
	index map[corev1.ResourceName]int
}

// vector holds an amount for each resource of its axes.
type vector []int64

// newAxes returns the axes for nodes that offer the given amounts.
func newAxes(offered [][]resources.Amount) *axes {
	a := &axes{index: map[corev1.ResourceName]int{}}
	for _, amounts := range offered {
		for _, amount := range amounts {
			a.names = append(a.names, amount.Resource)
		}
	}
	slices.SortFunc(a.names, resources.CompareNames)
	a.names = slices.Compact(a.names)
	for i, name := range a.names {
		a.index[name] = i
	}
	return a
}

// zero returns a vector with the amount 0 for each axis.
func (a *axes) zero() vector { return make(vector, len(a.names)) }

// vectorOf converts amounts to a vector. unknown is the first requested resource that no node
// offers, or empty if all are offered.
func (a *axes) vectorOf(amounts []resources.Amount) (v vector, unknown corev1.ResourceName) {
	v = a.zero()
	for _, amount := range amounts {
		i, known := a.index[amount.Resource]
		switch {
		case known:
			v[i] = amount.Value
		case amount.Value > 0 && unknown == "":
			unknown = amount.Resource
		}
	}
	return v, unknown
}

// list converts the named resources of a vector to a resource list. Negative amounts become 0.
func (a *axes) list(v vector, names []corev1.ResourceName) corev1.ResourceList {
	sums := resources.Sums{}
	for _, name := range names {
		if i, known := a.index[name]; known {
			sums[name] = resources.Sum{Value: max(0, v[i]), Count: 1}
		}
	}
	return sums.List()
}

// positive returns the resources whose amount in v is positive, in the order of the axes.
func (a *axes) positive(v vector) (names []corev1.ResourceName) {
	for i, name := range a.names {
		if v[i] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// copies returns how many times a request fits into the free amounts, and the resource that limits
// this number.
func (a *axes) copies(free, request vector) (copies int64, limit string) {
	copies = math.MaxInt64
	for i, name := range a.names {
		if request[i] <= 0 {
			continue
		}
		if n := max(0, free[i]) / request[i]; n < copies {
			copies, limit = n, string(name)
		}
	}
	if copies == math.MaxInt64 {
		return 0, string(corev1.ResourcePods) // Without any allocatable resource "pods", no pod fits.
	}
	return copies, limit
}

func (v vector) add(other vector) {
	for i := range v {
		v[i] += other[i]
	}
}

func (v vector) subtract(other vector) {
	for i := range v {
		v[i] -= other[i]
	}
}

// covers reports whether the amounts in v are sufficient for a request. Resources that are not
// requested are ignored, even if their amount in v is negative.
func (v vector) covers(request vector) bool {
	for i, r := range request {
		if r > 0 && r > v[i] {
			return false
		}
	}
	return true
}
