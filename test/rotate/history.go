// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Event is a change of a pod or a node in the API server's history. The first events are the
// objects of the list with which the history begins.
type Event struct {
	// At is the time at which the change was observed.
	At time.Time
	// Revision is the change's resource version, which orders the changes of pods and nodes.
	Revision uint64
	// Pod or Node is the object after the change; the other one is nil.
	Pod  *Pod
	Node *Node
}

// Pod is a state of a pod of a workload.
type Pod struct {
	UID            types.UID
	Workload, Node string
	// Ready is true if the condition Ready is.
	Ready bool
	// Deleted is true if the pod has a deletion time or no longer exists; Gone if it no longer
	// exists.
	Deleted, Gone bool
}

// serves reports whether a pod is ready and stays so. A pod with a deletion time is no longer ready
// in the sense of Services, nor healthy in the sense of PodDisruptionBudgets.
func (p Pod) serves() bool { return p.Ready && !p.Deleted }

// Workload is a Deployment whose pods are followed.
type Workload struct {
	Name string
	// Replicas is the number of pods.
	Replicas int
	// Healthy is the number of healthy pods that the PodDisruptionBudget demands, or 0 without a
	// budget.
	Healthy int
}

// Suffered is the effect of a history on a workload.
type Suffered struct {
	// Down is the time in which no pod was ready; Outages is the number of times that this began.
	Down    time.Duration
	Outages int
	// Deleted is the number of pods that were deleted.
	Deleted int
	// Violations is the number of deletions of a healthy pod after which fewer pods were healthy
	// than the budget demands.
	Violations int
}

// Order sorts events as they happened.
func Order(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Revision, b.Revision) })
}

// Measure returns the effect of ordered events on each workload, in the order of the workloads, from
// the time `begin` of the initial list to the time `end`.
func Measure(workloads []Workload, events []Event, begin, end time.Time) []Suffered {
	followers := map[string]*follower{}
	for _, w := range workloads {
		followers[w.Name] = &follower{workload: w, begin: begin, pods: map[types.UID]Pod{}, excused: map[types.UID]bool{}, downSince: begin}
	}
	notReady := map[string]bool{}
	for _, e := range events {
		if e.Node != nil {
			notReady[e.Node.Name] = e.Node.NotReady
		} else if f := followers[e.Pod.Workload]; f != nil {
			f.observe(e.At, *e.Pod, notReady[e.Pod.Node])
		}
	}
	all := make([]Suffered, len(workloads))
	for i, w := range workloads {
		all[i] = followers[w.Name].finish(end)
	}
	return all
}

// follower follows the pods of a workload.
type follower struct {
	workload Workload
	begin    time.Time
	// pods has the last state of each pod; serving is the number of pods that serve.
	pods    map[types.UID]Pod
	serving int
	// excused is the set of pods that are not ready because their nodes were not.
	excused map[types.UID]bool
	// downSince is the time since which no pod serves. It is only valid if serving is 0.
	downSince time.Time
	suffered  Suffered
}

// observe follows a change of a pod. notReady reports whether the pod's node is not ready.
func (f *follower) observe(at time.Time, pod Pod, notReady bool) {
	was := f.pods[pod.UID]
	// A pod that is no longer ready because its node is not, as the machine is too busy for the node's
	// kubelet, counts as ready until it is ready again: the rotation has not caused it.
	unhealthy := f.excused[pod.UID]
	f.excused[pod.UID] = !pod.Ready && (f.excused[pod.UID] || was.Ready && notReady)
	pod.Ready = pod.Ready || f.excused[pod.UID]
	before := f.serving
	if was.serves() {
		f.serving--
	}
	if pod.serves() {
		f.serving++
	}
	f.pods[pod.UID] = pod
	if pod.Deleted && !was.Deleted {
		f.suffered.Deleted++
		if was.serves() && !unhealthy && f.serving < f.workload.Healthy {
			f.suffered.Violations++
		}
	}
	switch {
	case before == 0 && f.serving > 0:
		f.up(at)
	case before > 0 && f.serving == 0:
		f.downSince = at
	}
}

// up ends the time without a serving pod. The list at the beginning has all pods at the same time,
// so it is not an outage that they are observed one after the other.
func (f *follower) up(at time.Time) {
	if down := at.Sub(f.downSince); down > 0 || f.downSince.After(f.begin) {
		f.suffered.Down += down
		f.suffered.Outages++
	}
}

func (f *follower) finish(end time.Time) Suffered {
	if f.serving == 0 {
		f.up(end)
	}
	return f.suffered
}
