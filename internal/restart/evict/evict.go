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

// Input is everything that a decision depends on.
type Input struct {
	Pods []Pod
	// CreatedBefore says which pods are to be replaced: all that were created before it.
	CreatedBefore time.Time
	// Desired is how many pods the workload should have.
	Desired int32
	// MaxUnavailable is how many of these may be unavailable at a time, at least 1.
	MaxUnavailable int32
	// Ordered says that the names of the pods end in their ordinals. The highest ordinal
	// goes first, as in an update of a StatefulSet.
	Ordered bool
}

// Plan is the result of a decision.
type Plan struct {
	// Next are the pods to evict now.
	Next []Pod
	// Old is the number of pods that are to be replaced, Next among them.
	Old int
	// Unready is the number of pods that are missing or not ready, of the pods that the
	// workload should have.
	Unready int32
	// Done says that no old pod is left, and that as many are ready as there should be.
	Done bool
}

// Decide decides which pods are evicted next. A pod that is not ready goes first, as nothing is
// lost with it. A ready pod goes only if no more than MaxUnavailable are unavailable then.
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
	// Places for pods that have neither a ready pod nor an old pod: their pods are coming up.
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
		// More may be ready than there should be, as in a surge.
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

// IsOld reports whether a pod is to be replaced.
func IsOld(pod Pod, createdBefore time.Time) bool { return pod.Created.Before(createdBefore) }

// CreatedBefore returns Input.CreatedBefore for a restart that is started now
// for a tick, with these pods. A pod that is created from now on is not older than that, even
// if the clock by which it is created is behind: it is created after the pods that there are.
func CreatedBefore(tick time.Time, pods []Pod) time.Time {
	latest := time.Unix(0, 0).UTC()
	for _, pod := range pods {
		if IsOld(pod, tick) && pod.Created.After(latest) {
			latest = pod.Created
		}
	}
	// The creation of a pod is in whole seconds. Without an old pod, none is.
	if after := latest.Add(time.Second); after.Before(tick) {
		return after
	}
	return tick
}

// Limit returns how many pods may be unavailable at a time: the number itself, or the percentage
// of the pods that there should be, rounded down as in a Deployment, and at least 1. The default
// is 1.
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

// sorted returns the pods in the order in which they are evicted: the oldest first, or the
// highest ordinal.
func (in *Input) sorted(pods []Pod) []Pod {
	slices.SortFunc(pods, func(a, b Pod) int {
		if in.Ordered {
			return cmp.Or(cmp.Compare(ordinal(b.Name), ordinal(a.Name)), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// ordinal returns the number at the end of the name of a pod, -1 if there is none.
func ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}
