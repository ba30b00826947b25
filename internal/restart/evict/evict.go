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

// Pod is a pod of the workload that has not terminated and is not being deleted.
type Pod struct {
	Name    string
	UID     types.UID
	Created time.Time
	Ready   bool
}

// Input holds the facts that a decision about evictions depends on.
type Input struct {
	Pods []Pod
	// CreatedBefore is the cutoff for old pods: pods that were created before this time must be
	// replaced.
	CreatedBefore time.Time
	// Desired is the desired number of pods.
	Desired int32
	// MaxUnavailable is the maximum number of unavailable pods, at least 1.
	MaxUnavailable int32
	// Ordered is true if pod names end in ordinals. Pods with higher ordinals are evicted first, as
	// in an update of a StatefulSet.
	Ordered bool
}

// Plan is the result of a decision about evictions.
type Plan struct {
	// Next lists the pods to evict now.
	Next []Pod
	// Old is the number of pods that must be replaced, including Next.
	Old int
	// Unready is the number of desired pods that are missing or not ready.
	Unready int32
	// Done is true if no old pod is left and the desired number of pods is ready.
	Done bool
}

// Decide chooses the pods to evict next. Pods that are not ready come first, as evicting them costs
// no availability. A ready pod is chosen only if at most MaxUnavailable pods are unavailable after
// its eviction.
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
	// replacing is the number of pods that are already being replaced: desired pods that are
	// missing, and pods that are neither old nor ready.
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
		// During a rollout with a surge, more pods than desired may be ready. Evicting one of these
		// makes no desired pod unavailable.
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

// IsOld reports whether a pod must be replaced because it was created before the given cutoff.
func IsOld(pod Pod, createdBefore time.Time) bool { return pod.Created.Before(createdBefore) }

// CreatedBefore returns the value of [Input.CreatedBefore] for a restart that starts now for the
// given tick (scheduled time). It is not later than the creation time of any future pod, even if
// the API server's clock is behind, because future pods are created after the given pods.
func CreatedBefore(tick time.Time, pods []Pod) time.Time {
	latest := time.Unix(0, 0).UTC()
	for _, pod := range pods {
		if IsOld(pod, tick) && pod.Created.After(latest) {
			latest = pod.Created
		}
	}
	// Creation times have a resolution of one second, so the cutoff is one second after the
	// creation of the latest old pod. If no pod is old, the cutoff is in 1970, and no pod is
	// replaced.
	if after := latest.Add(time.Second); after.Before(tick) {
		return after
	}
	return tick
}

// Limit returns the maximum number of unavailable pods, which is given as a number or as a
// percentage of the desired pods. A percentage is rounded down, but the result is at least 1. The
// default is 1.
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

// sorted returns the pods in eviction order: oldest first, or highest ordinal first if
// [Input.Ordered] is true.
func (in *Input) sorted(pods []Pod) []Pod {
	slices.SortFunc(pods, func(a, b Pod) int {
		if in.Ordered {
			return cmp.Or(cmp.Compare(ordinal(b.Name), ordinal(a.Name)), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// ordinal returns the number at the end of a pod name; -1 if there is none.
func ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}
