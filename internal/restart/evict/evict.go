// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pod is a pod of the workload that has neither ended nor been deleted.
type Pod struct {
	Name    string
	UID     types.UID
	Created time.Time
	Ready   bool
}

// Input has all facts that a decision depends on.
type Input struct {
	Pods []Pod
	// CreatedBefore is the time before which a pod must have been created to be replaced.
	CreatedBefore time.Time
	// Desired is the desired number of pods.
	Desired int32
	// MaxUnavailable is the maximum number of unavailable pods, at least 1.
	MaxUnavailable int32
	// Ordered is set if pod names end in ordinals. The highest ordinal is evicted first, as in an update of a
	// StatefulSet.
	Ordered bool
}

// Plan is the result of a decision.
type Plan struct {
	// Next has the pods to evict now.
	Next []Pod
	// Old is the number of pods that must be replaced, including Next.
	Old int
	// Unready is the number of desired pods that are missing or not ready.
	Unready int32
	// Done is set if no old pod is left and the desired number of pods is ready.
	Done bool
}

// Decide chooses the pods to evict next. Pods that are not ready come first, as evicting them costs no
// availability. A ready pod is chosen only if no more than MaxUnavailable pods are unavailable afterwards.
func Decide(in Input) Plan {
	var broken, sound []Pod
	ready := int32(0)
	for _, pod := range in.Pods {
		if pod.Ready {
			ready++
		}
		switch {
		case !IsOld(pod, in.CreatedBefore):
		case pod.Ready:
			sound = append(sound, pod)
		default:
			broken = append(broken, pod)
		}
	}
	p := Plan{Old: len(broken) + len(sound), Unready: max(0, in.Desired-ready)}
	// Desired pods that are neither ready nor old: they are starting.
	replacing := max(0, p.Unready-int32(len(broken)))
	for _, pod := range in.sorted(broken) {
		if replacing >= in.MaxUnavailable {
			break
		}
		p.Next = append(p.Next, pod)
		replacing++
	}
	unavailable := max(p.Unready, replacing)
	for _, pod := range in.sorted(sound) {
		// During a surge, more pods may be ready than desired.
		if ready > in.Desired {
			ready--
		} else {
			unavailable++
		}
		if unavailable > in.MaxUnavailable {
			break
		}
		p.Next = append(p.Next, pod)
	}
	p.Done = p.Old == 0 && p.Unready == 0
	return p
}

// IsOld reports whether a pod must be replaced.
func IsOld(pod Pod, createdBefore time.Time) bool { return pod.Created.Before(createdBefore) }

// CreatedBefore returns Input.CreatedBefore for a restart that starts now for a tick. The value is not later
// than the creation of any future pod, even if the clock of the API server is behind: future pods are created
// after the given pods.
func CreatedBefore(tick time.Time, pods []Pod) time.Time {
	latest := time.Unix(0, 0).UTC()
	for _, pod := range pods {
		if IsOld(pod, tick) && pod.Created.After(latest) {
			latest = pod.Created
		}
	}
	// Creation times have whole seconds. Without an old pod, there is nothing to replace.
	if after := latest.Add(time.Second); after.Before(tick) {
		return after
	}
	return tick
}

// Limit returns the maximum number of unavailable pods: the given number, or the percentage of the desired
// pods, rounded down but at least 1. Defaults to 1.
func Limit(maxUnavailable *intstr.IntOrString, desired int32) int32 {
	if maxUnavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(maxUnavailable, int(desired), false)
	if err != nil {
		return 1
	}
	return int32(max(1, n))
}

// sorted returns the pods in eviction order: the oldest first, or the highest ordinal first.
func (in *Input) sorted(pods []Pod) []Pod {
	slices.SortFunc(pods, func(a, b Pod) int {
		if in.Ordered {
			return cmp.Or(cmp.Compare(ordinal(b.Name), ordinal(a.Name)), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// ordinal returns the number at the end of a pod name, -1 if there is none.
func ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}
