// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

// Refused is an eviction, or a request for a restart, that the API server has refused.
type Refused struct {
	Reason string
	// At is the time of the refusal.
	At time.Time
	// Again is the time at which the refused request is retried. An eviction is retried earlier if
	// the PodDisruptionBudget of the pod allows evictions.
	Again time.Time
}

// retryPause is the minimum time between a refused eviction and its retry. If the eviction was refused
// repeatedly, the minimum is the retryShare-th part of the time until the regular retry: the refusals
// may come from a webhook, although the PodDisruptionBudget allows the eviction.
const (
	retryPause = 500 * time.Millisecond
	retryShare = 8
)

// Input holds the facts about the pods of a node.
type Input struct {
	Now time.Time
	// Pods lists the pods on the node, as read from the API server.
	Pods []corev1.Pod
	// Budgets lists the PodDisruptionBudgets of the pods' namespaces.
	Budgets []policyv1.PodDisruptionBudget
	// Deployments contains the Deployments whose pods may have to be moved by a restart. The entry
	// of a Deployment that does not exist is nil.
	Deployments map[types.NamespacedName]*appsv1.Deployment
	// LeavingElsewhere maps each Deployment to the number of its pods on other nodes that are being
	// drained.
	LeavingElsewhere map[types.NamespacedName]int32
	// Restarts contains the restarts that were requested for Deployments.
	Restarts map[types.NamespacedName]rescue.Restart
	// Refused maps the UIDs of pods to the last refusal of their eviction.
	Refused map[types.UID]Refused
	// NotRequested maps Deployments to the last refusal of a request for a restart.
	NotRequested map[types.NamespacedName]Refused
	// SingleReplicas and UnmanagedPods are the fields of the NodeMaintenance's spec.
	SingleReplicas tidekeeperv1.SingleReplicas
	UnmanagedPods  tidekeeperv1.UnmanagedPods
}

// Output defines how the pods leave a node.
type Output struct {
	// Evict lists the pods to evict now. Here and in Restart, namespaces take turns.
	Evict []*corev1.Pod
	// Restart lists the Deployments to restart so that their pods leave the node.
	Restart []types.NamespacedName
	// First lists the pods that the restarts in Restart must replace first, because the Deployment
	// has ready pods on other nodes, too.
	First []*corev1.Pod
	// Left is the number of pods that still have to leave the node, including the pods in Evict.
	Left int
	// Settled is true if all pods of DaemonSets on the node are ready.
	Settled bool
	// Reason and Message describe the pod that most likely blocks the drain; empty if all pods are
	// leaving.
	Reason, Message string
	// Wake is the time at which the next decision is due even without an event. It is zero if only
	// an event makes a decision necessary.
	Wake time.Time
}

// decider decides how the pods leave a node.
type decider struct {
	Input
	world *drain.World
	out   Output
	// ready maps each Deployment to the number of its ready pods on the node.
	ready map[types.NamespacedName]int32
	// chosen maps each PodDisruptionBudget to the number of its pods in out.Evict.
	chosen map[*policyv1.PodDisruptionBudget]int32
	// rank is the index of out.Reason in ranks, or len(ranks) if there is no reason. Reasons with a
	// lower index take precedence.
	rank int
}

// Decide determines how the pods leave a node.
func Decide(in Input) Output {
	d := &decider{Input: in, world: drain.NewWorld(in.Budgets, drain.Volumes{}), ready: map[types.NamespacedName]int32{}, chosen: map[*policyv1.PodDisruptionBudget]int32{}, rank: len(ranks)}
	d.out.Settled = true
	for i := range in.Pods {
		pod := &in.Pods[i]
		if pods.IsConditionTrue(pod, corev1.PodReady) && pod.DeletionTimestamp.IsZero() {
			if key, is := rescue.DeploymentOf(pod); is {
				d.ready[key]++
			}
		} else if !drain.Leaves(pod) && !pods.IsTerminal(pod) && pods.IsOfDaemonSet(pod) {
			d.out.Settled = false
		}
	}
	slices.SortFunc(in.Pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range in.Pods {
		if pod := &in.Pods[i]; drain.Leaves(pod) {
			d.out.Left++
			d.move(pod)
		}
	}
	d.out.Evict = lists.InTurns(d.out.Evict, (*corev1.Pod).GetNamespace)
	d.out.Restart = lists.InTurns(d.out.Restart, func(key types.NamespacedName) string { return key.Namespace })
	return d.out
}

// Reasons why pods stay on a node that is being drained, in addition to the reasons in the package
// drain.
const (
	restartWaits  = "RestartWaits"
	restartFailed = tidekeeperv1.EventRestartFailed
)

// ranks lists the reasons by precedence: the longest-lasting reasons come first.
var ranks = []string{
	string(drain.NoController), string(drain.Refused), string(drain.SeveralBudgets), string(drain.Budget), restartFailed,
	string(drain.Terminating), string(drain.Finalizer), restartWaits,
}

// move decides how a pod leaves its node.
func (d *decider) move(pod *corev1.Pod) {
	if !pod.DeletionTimestamp.IsZero() {
		d.terminating(pod)
		return
	}
	if !pods.IsReplaced(pod) && d.UnmanagedPods != tidekeeperv1.UnmanagedPodsEvict {
		d.blocked(pod, string(drain.NoController), "no controller creates it again: move it by hand, or set spec.unmanagedPods to Evict")
		return
	}
	if d.SingleReplicas == tidekeeperv1.SingleReplicasRestart && d.rescue(pod) {
		return
	}
	budget := d.world.BudgetOf(pod)
	if r, refused := d.Refused[pod.UID]; refused {
		d.blocked(pod, d.refusalReason(pod), r.Reason)
		if again := d.retryAt(budget, r); d.Now.Before(again) {
			d.wake(again)
			return
		}
	}
	d.chosen[budget]++
	d.out.Evict = append(d.out.Evict, pod)
}

// retryAt returns the time at which a refused eviction is retried. That is before the time r.Again
// if the PodDisruptionBudget of the pod allows more evictions than this decision has chosen.
// Otherwise the pods of a large workload would leave more slowly than their budget allows.
func (d *decider) retryAt(b *policyv1.PodDisruptionBudget, r Refused) time.Time {
	early := r.At.Add(max(retryPause, r.Again.Sub(r.At)/retryShare))
	if b != nil && b.Status.ObservedGeneration >= b.Generation && b.Status.DisruptionsAllowed > d.chosen[b] && early.Before(r.Again) {
		return early
	}
	return r.Again
}

// terminating records why a pod stays if the pod still exists after the end of its grace period.
func (d *decider) terminating(pod *corev1.Pod) {
	if end := pod.DeletionTimestamp.Time; end.After(d.Now) {
		return
	}
	if len(pod.Finalizers) > 0 {
		d.blocked(pod, string(drain.Finalizer), "is deleted, and has finalizers: find out who removes them")
		return
	}
	d.blocked(pod, string(drain.Terminating), "is deleted, its grace period is over, and it is still there: see whether the kubelet of the node works")
}

// refusalReason returns the reason why the API server refuses to evict a pod.
func (d *decider) refusalReason(pod *corev1.Pod) string {
	for _, b := range d.world.Blockers(nil, []*corev1.Pod{pod}, d.Now) {
		if b.Reason == drain.Budget || b.Reason == drain.SeveralBudgets {
			return string(b.Reason)
		}
	}
	return string(drain.Refused)
}

// blocked records the reason why a pod stays, unless a reason of the same or a higher precedence is
// already recorded.
func (d *decider) blocked(pod *corev1.Pod, reason, message string) {
	if rank := slices.Index(ranks, reason); rank < d.rank {
		d.rank = rank
		of := ""
		if kind, name := pods.Workload(pod); kind != "" {
			of = fmt.Sprintf(" (%s/%s)", kind, name)
		}
		d.out.Reason, d.out.Message = reason, fmt.Sprintf("pod %s/%s%s: %s", pod.Namespace, pod.Name, of, message)
	}
}

func (d *decider) wake(at time.Time) {
	if d.out.Wake.IsZero() || at.Before(d.out.Wake) {
		d.out.Wake = at
	}
}
