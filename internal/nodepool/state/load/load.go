// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load adds up the requests of the pods on each node, event by event.
//
//	load.go     the load of each node, and the totals of several nodes
//	profile.go  the profile shared by similar pods
//	known.go    the cache of profiles, by shared containers
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

// Nodes is the load of each node. Only resources that some node offers are added up, so that
// tenants who invent resources cost nothing; requests for any other resource are added once a
// node offers the resource.
type Nodes struct {
	profiles profiles
	known    knownProfiles
	// offered is the number of nodes that offer each resource.
	offered map[corev1.ResourceName]int
	pods    map[types.UID]podOnNode
	loads   map[string]*Load
}

type podOnNode struct {
	load    *Load
	profile *Profile
}

// Load is the load of a node. It exists as long as the node has pods or is in use, even if the
// pods became known before their node.
type Load struct {
	node string
	// requested is the sum over the pods.
	requested resources.Sums
	// pods is the number of pods by profile.
	pods map[*Profile]int
	// totals are sums over several nodes that include this load.
	totals []*resources.Sums
	// inUse is true from Nodes.Of until Nodes.Drop.
	inUse bool
}

// NewNodes returns the loads of nodes without pods.
func NewNodes() *Nodes {
	return &Nodes{
		profiles: profiles{}, known: knownProfiles{}, offered: map[corev1.ResourceName]int{},
		pods: map[types.UID]podOnNode{}, loads: map[string]*Load{},
	}
}

// Of returns the load of a node, for use until Drop.
func (n *Nodes) Of(node string) *Load {
	l := n.of(node)
	l.inUse = true
	return l
}

// Drop ends the use of a node's load.
func (n *Nodes) Drop(node string) {
	if l := n.loads[node]; l != nil {
		l.inUse = false
		n.tidy(l)
	}
}

// All yields each node that has pods or is in use, with its load.
func (n *Nodes) All() iter.Seq2[string, *Load] { return maps.All(n.loads) }

func (n *Nodes) of(node string) *Load {
	l, known := n.loads[node]
	if !known {
		l = &Load{node: node}
		n.loads[node] = l
	}
	return l
}

// tidy forgets a load that is not in use any more.
func (n *Nodes) tidy(l *Load) {
	if !l.inUse && len(l.pods) == 0 {
		delete(n.loads, l.node)
	}
}

// SetPod adds or updates a pod, and returns the names of the nodes whose load has changed: the
// node that the pod came to and the node that it left; "" for no node. Pods with the same
// containers in memory, and not merely equal containers, must differ in metadata, node, phase
// and conditions only, like the pods of the manager's cache.
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

// DeletePod removes a pod, and returns the name of the node whose load has changed; "" if none.
func (n *Nodes) DeletePod(uid types.UID) (left string) {
	pod, known := n.pods[uid]
	if !known {
		return ""
	}
	delete(n.pods, uid)
	return n.release(pod)
}

// release removes a pod from the load of its node.
func (n *Nodes) release(pod podOnNode) (left string) {
	if pod.load.pods[pod.profile]--; pod.load.pods[pod.profile] == 0 {
		delete(pod.load.pods, pod.profile)
	}
	n.add(pod, -1)
	n.profiles.release(pod.profile)
	n.tidy(pod.load)
	return pod.load.node
}

// add adds the requests of a pod, times count, to all sums that include the pod.
func (n *Nodes) add(pod podOnNode, count int) {
	for _, a := range pod.profile.Requests {
		if n.offered[a.Resource] > 0 {
			pod.load.add(a, count)
		}
	}
}

// Offer records that a node now offers other resources than before. It returns the names of the
// nodes whose load has changed: requests for a resource count as long as any node offers the
// resource.
func (n *Nodes) Offer(before, now []corev1.ResourceName) sets.Set[string] {
	began, ended := sets.New[corev1.ResourceName](), sets.New[corev1.ResourceName]()
	// Add first, then remove: the count of a resource that the node offers before and after
	// must not drop to 0 in between.
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

// count adds the requests of all pods for the named resources to the sums, times sign, and
// inserts the names of the pods' nodes into changed. It is cheap unless pods request these
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

// Requested returns the sum of the requests of the node's pods. The caller must not change it.
func (l *Load) Requested() resources.Sums { return l.requested }

// Pods yields the number of the node's pods by profile.
func (l *Load) Pods() iter.Seq2[*Profile, int] { return maps.All(l.pods) }

// AddTo adds the load to a sum over several nodes, and keeps the sum up to date until TakeFrom.
func (l *Load) AddTo(total *resources.Sums) {
	total.AddSums(l.requested)
	l.totals = append(l.totals, total)
}

// TakeFrom is the opposite of AddTo.
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
