// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// evictee is a member node in the eyes of a pool that has NoExecute taints.
type evictee struct {
	node string
	// waiting: a taint of the pool is held back from this node.
	waiting bool
	// admitted: the node may be tainted, and is not yet.
	admitted bool
	// since is when the last of the pool's taints that evict was put on the
	// node; zero if none was.
	since time.Time
	// victims is the number of running pods that the taints drive out, now or
	// when their tolerationSeconds end.
	victims int
}

// nextEvictions returns the nodes that a NoExecute taint may be put on now, so
// that at most share percent of the pool's nodes (and at least one) are being
// emptied at any time. A node is being emptied until its victims are gone and
// settle has passed since the taint was put on it. Nodes without victims lose
// nothing and never wait.
//
// It also returns after how long to ask again if nothing else happens, or 0 if
// no node waits. Everything is told from the nodes themselves, so a restarted
// or second manager comes to the same answer.
func nextEvictions(nodes []evictee, share int, settle time.Duration, now time.Time) (admit []string, again time.Duration) {
	budget := max(1, len(nodes)*share/100)
	waiting := []evictee{}
	for _, n := range nodes {
		switch {
		case n.waiting && n.victims == 0:
			admit = append(admit, n.node)
		case n.waiting && settling(n.since, settle, now):
			// It is being emptied already, and counts, for another taint of
			// the pool; one more makes no second node of it.
			admit = append(admit, n.node)
			budget--
		case n.waiting:
			waiting = append(waiting, n)
		case n.admitted || n.victims > 0 || settling(n.since, settle, now):
			budget--
		}
	}
	// The emptiest first: progress is made where it hurts least.
	slices.SortFunc(waiting, func(a, b evictee) int {
		return cmp.Or(cmp.Compare(a.victims, b.victims), cmp.Compare(a.node, b.node))
	})
	taken := min(max(budget, 0), len(waiting))
	for _, n := range waiting[:taken] {
		admit = append(admit, n.node)
	}
	if taken < len(waiting) {
		again = max(settle/4, time.Second)
	}
	slices.Sort(admit)
	return admit, again
}

// settling tells whether a node that was tainted at that time is still being
// emptied, as far as the time says. One that lies further ahead than the leaders'
// clocks may reasonably differ was written by a clock that was wrong, and set back
// since: to wait for it would hold up the pool for as long as it was wrong by.
func settling(since time.Time, settle time.Duration, now time.Time) bool {
	return now.Sub(since).Abs() < settle
}

// evicting returns the pool's taints that evict, or nil.
func evicting(pool *tidekeeperv1.NodePool) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range pool.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, corev1.Taint{Key: t.Key, Value: string(t.Value), Effect: t.Effect})
		}
	}
	return taints
}

// isVictim tells whether the taints drive the pod out of its node, at once or
// when its tolerationSeconds end.
func isVictim(pod *corev1.Pod, taints []corev1.Taint) bool {
	_, goes := eviction(pod, taints)
	return goes
}

// eviction returns how long after they are put on its node the taints drive the
// pod out, and whether they ever do. Of several tolerations that match a taint,
// the first counts, as for the taint eviction controller of Kubernetes.
func eviction(pod *corev1.Pod, taints []corev1.Taint) (after time.Duration, goes bool) {
	if terminal(pod) {
		return 0, false
	}
	for _, taint := range taints {
		i := slices.IndexFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(logr.Discard(), &taint, true)
		})
		if i < 0 {
			return 0, true
		}
		limit := pod.Spec.Tolerations[i].TolerationSeconds
		if limit == nil {
			continue
		}
		// Nobody waits longer than a century, and more would not fit.
		wait := time.Duration(min(max(*limit, 0), 100*365*24*3600)) * time.Second
		if !goes || wait < after {
			after, goes = wait, true
		}
	}
	return after, goes
}

// lastEviction returns when the latest of the taints was put on the node, or
// the zero time if none of them is there. One of another value is another
// pool's, or what this pool asked for before.
func lastEviction(node *corev1.Node, taints []corev1.Taint) time.Time {
	var last time.Time
	for _, on := range node.Spec.Taints {
		for _, t := range taints {
			if on.MatchTaint(&t) && on.Value == t.Value && on.TimeAdded != nil && on.TimeAdded.After(last) {
				last = on.TimeAdded.Time
			}
		}
	}
	return last
}
