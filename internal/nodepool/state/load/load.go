// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load maintains running sums of the pods' resource requests on each node.
//
// A pod's profile consists of its resource requests, the constraints on the nodes that it may run
// on, and what happens to the pod if its node is lost. Pods with equal profiles share one profile
// in memory.
//
//	load.go     the load of each node, and sums over several nodes
//	profile.go  the profiles in use
//	known.go    a cache that finds a pod's profile by the address of the pod's containers, which
//	            the pods of a workload share in memory
package load

import (
	"iter"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Nodes holds the load of each node, that is, its pods and the sum of their requests. Only
// resources that some node offers are added up, so that users cannot increase the manager's memory
// use with arbitrary resource names. Requests for another resource are added as soon as a node
// offers it.
type Nodes struct {
	profiles profiles
	known    knownProfiles
	// offered maps each resource to the number of nodes that offer it.
	offered map[corev1.ResourceName]int
	pods    map[types.UID]podOnNode
	loads   map[string]*Load
}

type podOnNode struct {
	load    *Load
	profile *Profile
}

// Load is the load of a node: its pods and the sum of their requests. It exists as long as the node
// has pods or the load is in use. It may exist before the node is known, because pods may become
// known before their node.
type Load struct {
	node string
	// requested is the sum of the requests of the node's pods.
	requested resources.Sums
	// pods counts the pods of the node by profile.
	pods map[*Profile]int
	// totals lists the sums over several nodes to which this load contributes.
	totals []*resources.Sums
	// inUse is true between the calls of Nodes.Of and Nodes.Drop for this node.
	inUse bool
}

// NewNodes returns a Nodes without pods.
func NewNodes() *Nodes {
	return &Nodes{
		profiles: profiles{}, known: knownProfiles{}, offered: map[corev1.ResourceName]int{},
		pods: map[types.UID]podOnNode{}, loads: map[string]*Load{},
	}
}

// Of returns the load of a node, and keeps it until Drop is called, even if the node has no pods.
func (n *Nodes) Of(node string) *Load {
	l := n.of(node)
	l.inUse = true
	return l
}

// Drop ends the use of a load returned by Of.
func (n *Nodes) Drop(node string) {
	if l := n.loads[node]; l != nil {
		l.inUse = false
		n.tidy(l)
	}
}

// All yields the name and the load of each node that has pods or is in use.
func (n *Nodes) All() iter.Seq2[string, *Load] { return maps.All(n.loads) }

func (n *Nodes) of(node string) *Load {
	l, known := n.loads[node]
	if !known {
		l = &Load{node: node}
		n.loads[node] = l
	}
	return l
}

// tidy deletes a load that is not in use and has no pods.
func (n *Nodes) tidy(l *Load) {
	if !l.inUse && len(l.pods) == 0 {
		delete(n.loads, l.node)
	}
}

// SetPod adds or updates a pod. came and left are the names of the nodes whose load has changed,
// that is, the pod's current node and its previous node. Either may be "". Pods whose containers
// are shared in memory, as opposed to merely equal, may differ only in their metadata, node, phase
// and conditions, as is the case for pods in the manager's cache.
func (n *Nodes) SetPod(pod *corev1.Pod) (came, left string) {
	if pod.Spec.NodeName == "" || pods.IsTerminal(pod) {
		return "", n.DeletePod(pod.UID)
	}
	now := podOnNode{load: n.of(pod.Spec.NodeName), profile: n.acquire(pod)}
	before, known := n.pods[pod.UID]
	if before == now {
		n.profiles.release(now.profile)
		return "", ""
	}
	n.pods[pod.UID] = now
	if now.load.pods == nil {
		now.load.pods = map[*Profile]int{}
	}
	now.load.pods[now.profile]++
	n.add(now, 1)
	if known {
		left = n.release(before)
	}
	return now.load.node, left
}

// DeletePod removes a pod. It returns the name of the node whose load has changed, or "" if no load
// has changed.
func (n *Nodes) DeletePod(uid types.UID) (left string) {
	pod, known := n.pods[uid]
	if !known {
		return ""
	}
	delete(n.pods, uid)
	return n.release(pod)
}

// release removes a pod from its node's load, and returns the name of the node.
func (n *Nodes) release(pod podOnNode) (left string) {
	if pod.load.pods[pod.profile]--; pod.load.pods[pod.profile] == 0 {
		delete(pod.load.pods, pod.profile)
	}
	n.add(pod, -1)
	n.profiles.release(pod.profile)
	n.tidy(pod.load)
	return pod.load.node
}

// add adds a pod's requests, multiplied by `count`, to all sums that include the pod's node.
func (n *Nodes) add(pod podOnNode, count int) {
	for _, a := range pod.profile.Requests {
		if n.offered[a.Resource] > 0 {
			pod.load.add(a, count)
		}
	}
}

// Offer records that the resources offered by a node have changed from `before` to `now`. It
// returns the names of all nodes whose load has changed, because requests for a resource are
// counted on all nodes as long as any node offers the resource.
func (n *Nodes) Offer(before, now []corev1.ResourceName) sets.Set[string] {
	began, ended := sets.New[corev1.ResourceName](), sets.New[corev1.ResourceName]()
	// New resources are counted before old resources are removed, so that the count of a resource
	// in both lists does not temporarily drop to 0.
	for _, name := range now {
		if n.offered[name]++; n.offered[name] == 1 {
			began.Insert(name)
		}
	}
	for _, name := range before {
		if n.offered[name]--; n.offered[name] == 0 {
			delete(n.offered, name)
			ended.Insert(name)
		}
	}
	changed := sets.New[string]()
	n.count(began, 1, changed)
	n.count(ended, -1, changed)
	return changed
}

// count adds all pods' requests for the named resources, multiplied by `sign`, to the sums. It
// inserts the names of the pods' nodes into `changed`. It is cheap unless pods request these
// resources.
func (n *Nodes) count(names sets.Set[corev1.ResourceName], sign int, changed sets.Set[string]) {
	if len(names) == 0 {
		return
	}
	requests := map[*Profile][]resources.Amount{}
	for _, p := range n.profiles {
		for name := range names {
			if a, ok := p.request(name); ok {
				requests[p] = append(requests[p], a)
			}
		}
	}
	if len(requests) == 0 {
		return
	}
	for _, l := range n.loads {
		for p, pods := range l.pods {
			for _, a := range requests[p] {
				l.add(a, sign*pods)
				changed.Insert(l.node)
			}
		}
	}
}

func (l *Load) add(a resources.Amount, count int) {
	l.requested.AddN(a, count)
	for _, total := range l.totals {
		total.AddN(a, count)
	}
}

// Requested returns the sum of the requests of the node's pods. The caller must not modify it.
func (l *Load) Requested() resources.Sums { return l.requested }

// Pods yields each profile of the node's pods, with the number of pods that have it.
func (l *Load) Pods() iter.Seq2[*Profile, int] { return maps.All(l.pods) }

// AddTo adds the load to a sum over several nodes. The sum is kept up to date until TakeFrom is
// called.
func (l *Load) AddTo(total *resources.Sums) {
	total.AddSums(l.requested)
	l.totals = append(l.totals, total)
}

// TakeFrom subtracts the load from a sum that was passed to AddTo, and stops updating the sum.
func (l *Load) TakeFrom(total *resources.Sums) {
	total.SubtractSums(l.requested)
	for i := range l.totals {
		if l.totals[i] == total {
			last := len(l.totals) - 1
			l.totals[i] = l.totals[last]
			l.totals[last] = nil
			l.totals = l.totals[:last]
			return
		}
	}
}
