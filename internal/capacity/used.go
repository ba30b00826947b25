// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// MetricsExpire is the age at which metrics expire. Metrics servers usually update the metrics of a
// node at least every two minutes.
const MetricsExpire = 10 * time.Minute

// usedMost is the maximum plausible usage of a node. A higher value is attributed to an error of
// the metrics server, and ignored.
var usedMost = map[corev1.ResourceName]resource.Quantity{
	corev1.ResourceCPU:    *resource.NewQuantity(1<<20, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(1<<50, resource.BinarySI),
}

// Metrics is the CPU and memory usage of a node that a metrics server has measured.
type Metrics struct {
	Node string
	// Time is the time of the measurement, or zero if it is unknown.
	Time  time.Time
	Usage corev1.ResourceList
}

// Used is the measured CPU and memory usage of a group of nodes, as opposed to the requests of
// their pods.
type Used struct {
	// Nodes is the number of nodes in the group. MeasuredNodes is the number of these nodes that
	// have usable metrics.
	Nodes         int `json:"nodes"`
	MeasuredNodes int `json:"measuredNodes"`
	// Resources is the usage summed over the measured nodes. It is a lower bound if some nodes have
	// no metrics.
	Resources corev1.ResourceList `json:"resources"`
}

// AtLeast reports whether Resources is only a lower bound, because some nodes have no metrics.
func (u *Used) AtLeast() bool { return u.MeasuredNodes < u.Nodes }

// UsedBy returns the usage of the named nodes at the given time, or nil if none of them has
// metrics. Metrics that have expired, lack CPU or memory, or contain implausible amounts are
// ignored.
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

// scales limits the precision of the reported sums. Metrics servers report CPU usage in nanocores,
// which would be hard to read.
var scales = map[corev1.ResourceName]resource.Scale{corev1.ResourceCPU: resource.Milli, corev1.ResourceMemory: 0}

// usable reports whether the metrics are plausible and have not expired.
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
