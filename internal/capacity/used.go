// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// MetricsExpire is the age from which metrics do not count. A metrics server renews them every
// minute or two at most.
const MetricsExpire = 10 * time.Minute

// usedMost is the most that a node can use of the resources that are measured. More is a mistake
// of the metrics server.
var usedMost = map[corev1.ResourceName]resource.Quantity{
	corev1.ResourceCPU:    *resource.NewQuantity(1<<20, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(1<<50, resource.BinarySI),
}

// Metrics is the measured usage of a node.
type Metrics struct {
	Node string
	// Time is the time of the measurement; zero if it is not known.
	Time  time.Time
	Usage corev1.ResourceList
}

// Used is how much CPU and memory the nodes of a group use, whatever their pods request.
type Used struct {
	// Nodes is how many nodes the group has, and MeasuredNodes how many of them have metrics.
	Nodes         int `json:"nodes"`
	MeasuredNodes int `json:"measuredNodes"`
	// Resources is the sum of the measured nodes: a lower bound for the group if it has other nodes.
	Resources corev1.ResourceList `json:"resources"`
}

// AtLeast reports whether the resources are a lower bound.
func (u *Used) AtLeast() bool { return u.MeasuredNodes < u.Nodes }

// UsedBy returns how much the nodes of these names use at a time, nil if none of them has metrics.
// Metrics that have expired, lack CPU or memory, or have an amount that no node can use do not
// count.
func UsedBy(names []string, list []Metrics, now time.Time) *Used {
	usage := make(map[string]corev1.ResourceList, len(list))
	for i := range list {
		if list[i].usable(now) {
			usage[list[i].Node] = list[i].Usage
		}
	}
	u := &Used{Nodes: len(names), Resources: corev1.ResourceList{}}
	for _, name := range names {
		of, measured := usage[name]
		if !measured {
			continue
		}
		u.MeasuredNodes++
		for resource := range usedMost {
			sum := u.Resources[resource]
			sum.Add(of[resource])
			u.Resources[resource] = sum
		}
	}
	if u.MeasuredNodes == 0 {
		return nil
	}
	for name, sum := range u.Resources {
		sum.RoundUp(scales[name])
		u.Resources[name] = sum
	}
	return u
}

// scales are the fractions that are shown: nanocores are measured, which are too fine to read.
var scales = map[corev1.ResourceName]resource.Scale{corev1.ResourceCPU: resource.Milli, corev1.ResourceMemory: 0}

// usable reports whether the metrics count at a time.
func (m *Metrics) usable(now time.Time) bool {
	if !m.Time.IsZero() && now.Sub(m.Time) >= MetricsExpire {
		return false
	}
	for name, most := range usedMost {
		amount, known := m.Usage[name]
		if !known || amount.Sign() < 0 || amount.Cmp(most) > 0 {
			return false
		}
	}
	return true
}
