// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/pods"
)

// SetPod adds or updates a pod. Pods that have the very same containers, and not only equal ones,
// must differ only in their metadata, node and phase, and in conditions, as those of the cache do.
func (c *Cluster) SetPod(pod *corev1.Pod) Dirty {
	c.lock()
	if pod.Spec.NodeName == "" || pods.IsTerminal(pod) {
		c.removePod(pod.UID)
		return c.unlock()
	}
	n := c.node(pod.Spec.NodeName)
	now := podState{node: n, profile: c.acquireProfile(pod)}
	before, known := c.pods[pod.UID]
	if before == now {
		c.profiles.release(now.profile)
		return c.unlock()
	}
	c.pods[pod.UID] = now
	if n.pods == nil {
		n.pods = map[*profile]int{}
	}
	n.pods[now.profile]++
	c.addRequests(n, now.profile.requests)
	if known {
		c.release(before)
	}
	return c.unlock()
}

// DeletePod removes a pod.
func (c *Cluster) DeletePod(uid types.UID) Dirty {
	c.lock()
	c.removePod(uid)
	return c.unlock()
}

func (c *Cluster) removePod(uid types.UID) {
	if pod, known := c.pods[uid]; known {
		delete(c.pods, uid)
		c.release(pod)
	}
}

// release removes a pod from its node, and its requests from the sums.
func (c *Cluster) release(pod podState) {
	if pod.node.pods[pod.profile]--; pod.node.pods[pod.profile] == 0 {
		delete(pod.node.pods, pod.profile)
	}
	c.removeRequests(pod.node, pod.profile.requests)
	c.profiles.release(pod.profile)
	c.forget(pod.node)
}

// addRequests adds what a pod requests to the sums of its node and of the node's pools, for
// the resources that any node offers.
func (c *Cluster) addRequests(n *nodeState, requests []resources.Amount) {
	for _, a := range requests {
		if c.offered[a.Resource] > 0 {
			for sums := range n.requestedSums() {
				sums.AddN(a, 1)
			}
		}
	}
	c.recountRoom(n)
}

// removeRequests is the opposite of addRequests.
func (c *Cluster) removeRequests(n *nodeState, requests []resources.Amount) {
	for _, a := range requests {
		if c.offered[a.Resource] > 0 {
			for sums := range n.requestedSums() {
				sums.SubtractN(a, 1)
			}
		}
	}
	c.recountRoom(n)
}

// requestedSums yields the sums that include the pods of the node: its own and those of its
// pools.
func (n *nodeState) requestedSums() iter.Seq[*resources.Sums] {
	return func(yield func(*resources.Sums) bool) {
		if !yield(&n.requested) {
			return
		}
		for _, p := range n.pools {
			if !yield(&p.requested) {
				return
			}
		}
	}
}

// utilizationChanged queues the pools of a node whose utilization has changed.
func (c *Cluster) utilizationChanged(n *nodeState) {
	for _, p := range n.pools {
		c.dirty.Utilization.Insert(p.object.Name)
	}
}
