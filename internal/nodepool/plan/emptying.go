// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

const (
	// maxEvictions is the maximum number of evictions on a node per decision, so that a node with
	// many pods does not delay the evictions on other nodes.
	maxEvictions = 16
	// firstEvictionRetry is the delay before the first retry of a refused eviction.
	firstEvictionRetry = time.Second
	// arrivalDelay is the minimum age at which a pod is evicted if it was created after the node
	// was closed to new pods. The scheduler places no pods on a closed node, so another client
	// placed the pod there, and may also place its successor there. The delay limits how fast such
	// pods are evicted and created again.
	arrivalDelay = time.Minute
	// evictedFor is the time after an accepted eviction for which the pod counts as evicted even if
	// the cache does not show its deletion.
	evictedFor = time.Minute
	// emptyingInterval is the interval at which a node that is being emptied is checked even
	// without an event.
	emptyingInterval = 5 * time.Second
)

// EvictionAttempts holds the evictions that this process has requested on a node that is being
// emptied.
type EvictionAttempts struct {
	// Tried maps the UIDs of pods to the time of the last request for their eviction.
	Tried map[types.UID]time.Time
	// Accepted maps the UIDs of pods to the time at which the API server accepted their eviction.
	Accepted map[types.UID]time.Time
	// Refused maps groups of pods (see [EvictionGroup]) to their last refused eviction. Groups with
	// an accepted eviction since that refusal are not included.
	Refused map[types.UID]RefusedEviction
}

// RefusedEviction is the last refused eviction of pods with the same [EvictionGroup].
type RefusedEviction struct {
	// Reason is the API server's reason for the refusal, or the error of the request.
	Reason string
	// Since is the time of the first of the consecutive refusals, and At is the time of the last.
	Since, At time.Time
}

// EvictionGroup returns the UID of the pod's controller. Pods of the same controller usually have
// the same PodDisruptionBudget. For a pod without a controller, it returns the UID of the pod.
func EvictionGroup(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return pod.UID
}

// EmptyingInput holds the facts that [DecideEmptying] depends on.
type EmptyingInput struct {
	// Taints lists the taints that the node is being emptied for, at least one.
	Taints []TaintBeingPrepared
	// NodeTaints lists the current taints of the node.
	NodeTaints []corev1.Taint
	// Pods lists the pods that are bound to the node.
	Pods     []*corev1.Pod
	Attempts *EvictionAttempts
	// MinDuration is the minimum time for which a node stays closed to new pods before it counts as
	// emptied.
	MinDuration time.Duration
}

// EmptyingPlan is the result of [DecideEmptying].
type EmptyingPlan struct {
	// Evict lists the pods to evict now, in this order. Once an eviction is refused, the other pods
	// with the same [EvictionGroup] must be skipped.
	Evict []*corev1.Pod
	// Left is the number of pods that still have to leave the node.
	Left int
	// Emptied is true if the taints would delete no pods other than pods that are already being
	// deleted.
	Emptied bool
	// Stays is the namespace and name of the pod that most likely keeps the node from being
	// emptied, and StaysBecause is the reason. Both are empty if no pod is known to do so.
	Stays, StaysBecause string
	// Again is the time after which the decision must be repeated even without an event.
	Again time.Duration
}

// DecideEmptying decides which pods to evict from a node that is closed to new pods and will get
// NoExecute taints. When the taints are added, they must not delete pods regardless of their
// PodDisruptionBudgets.
//
//   - A pod that tolerates the taints indefinitely stays. A pod that tolerates a taint for a number
//     of seconds is evicted that long after the node was closed.
//   - Static pods are ignored, because they are managed by the kubelet, not by the API server.
//   - Pods of DaemonSets are evicted last, because other pods may need them. Pods that tolerate all
//     current taints of the node are also evicted last, because the scheduler could place their
//     successors on the node. Once these last pods are being deleted, the node counts as emptied,
//     because the NoExecute taints then keep away their successors.
//   - A successor that is placed on the node earlier is never evicted, because its own successor
//     could be placed there, too, and so on forever. If it belongs to a DaemonSet, the NoExecute
//     taints delete it. If not, it keeps the node from being emptied.
//   - Refused evictions are retried with increasing delays. Namespaces with pods to evict take
//     turns.
func DecideEmptying(in EmptyingInput, now time.Time) EmptyingPlan {
	e := emptying{EmptyingInput: in, now: now}
	for _, t := range in.Taints {
		if t.Since.After(e.closed) {
			e.closed = t.Since
		}
	}
	for _, pod := range in.Pods {
		e.sort(pod)
	}
	e.plan.Left += len(e.due) + len(e.last)
	switch minimum := e.closed.Add(in.MinDuration); {
	case e.plan.Left > len(e.last):
	case Within(e.closed, in.MinDuration, now):
		e.wake(minimum)
	case len(e.last) > 0:
		e.due, e.last = e.last, nil
	default:
		e.plan.Emptied = true
	}
	e.choose()
	e.blame()
	if e.plan.Left > 0 {
		e.wake(now.Add(emptyingInterval))
	}
	return e.plan
}

// emptying holds the intermediate state of [DecideEmptying].
type emptying struct {
	EmptyingInput
	now time.Time
	// closed is the latest time at which the node was closed to new pods for any of its taints.
	closed time.Time
	// due lists the pods that may be evicted now. last lists the pods that may be evicted once no
	// other pods remain.
	due, last []*corev1.Pod
	// leaving is the pod whose termination is overdue for the longest time. stuck is a pod that
	// must not be evicted although the taint stuckBecause would delete it.
	leaving, stuck *corev1.Pod
	stuckBecause   *TaintBeingPrepared
	plan           EmptyingPlan
}

// sort classifies a pod as leaving, due to be evicted, or staying.
func (e *emptying) sort(pod *corev1.Pod) {
	because, due := e.dueAt(pod)
	if because == nil || isStatic(pod) {
		return
	}
	ofDaemonSet, returns := pods.IsOfDaemonSet(pod), e.returns(pod)
	arrived := pod.CreationTimestamp.After(because.Since)
	switch leaving := pod.DeletionTimestamp != nil || e.evicted(pod); {
	case leaving && (ofDaemonSet || returns):
		// The node need not wait for this pod. The taints do not affect a pod that is being
		// deleted, and keep away its successor.
	case leaving:
		e.plan.Left++
		if pod.DeletionTimestamp != nil && (e.leaving == nil || pod.DeletionTimestamp.Before(e.leaving.DeletionTimestamp)) {
			e.leaving = pod
		}
	case arrived && returns && ofDaemonSet:
	case arrived && returns:
		e.plan.Left++
		e.stuck, e.stuckBecause = pod, because
	case due.After(e.now):
		e.plan.Left++
		e.wake(due)
	case ofDaemonSet || returns:
		e.last = append(e.last, pod)
	case arrived && Within(pod.CreationTimestamp.Time, arrivalDelay, e.now):
		e.plan.Left++
		e.wake(pod.CreationTimestamp.Add(arrivalDelay))
	default:
		e.due = append(e.due, pod)
	}
}

// dueAt returns the taint that removes the pod first, and the time at which it does. It returns nil
// if the pod has terminated, or tolerates all taints indefinitely.
func (e *emptying) dueAt(pod *corev1.Pod) (because *TaintBeingPrepared, due time.Time) {
	for i := range e.Taints {
		t := &e.Taints[i]
		after, evicted := EvictionDelay(pod, []corev1.Taint{t.Taint})
		if !evicted {
			continue
		}
		at := t.Since.Add(after)
		if !Within(t.Since, after, e.now) {
			at = e.now // The time is in the past, or comes from a wrong clock.
		}
		if because == nil || at.Before(due) {
			because, due = t, at
		}
	}
	return because, due
}

// evicted reports whether the API server recently accepted the eviction of the pod.
func (e *emptying) evicted(pod *corev1.Pod) bool {
	if e.Attempts == nil {
		return false
	}
	at, accepted := e.Attempts.Accepted[pod.UID]
	return accepted && Within(at, evictedFor, e.now)
}

// returns reports whether the scheduler could place the pod's successor on the same node.
func (e *emptying) returns(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(e.NodeTaints, func(t corev1.Taint) bool { return nodes.Blocks(&t, pod.Spec.Tolerations) })
}

// choose selects the pods to evict among the pods that are due. Among pods with the same
// [EvictionGroup] of which an eviction was refused, it selects only a single pod.
func (e *emptying) choose() {
	if e.Attempts == nil {
		return
	}
	slices.SortFunc(e.due, func(a, b *corev1.Pod) int {
		return cmp.Or(e.Attempts.Tried[a.UID].Compare(e.Attempts.Tried[b.UID]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var candidates []*corev1.Pod
	groups := map[types.UID]bool{}
	for _, pod := range e.due {
		group := EvictionGroup(pod)
		if refused, was := e.Attempts.Refused[group]; was {
			retry := pods.EvictionRetry(refused.At.Sub(refused.Since), firstEvictionRetry)
			if groups[group] {
				continue
			}
			groups[group] = true
			if Within(refused.At, retry, e.now) {
				e.wake(refused.At.Add(retry))
				continue
			}
		}
		candidates = append(candidates, pod)
	}
	e.plan.Evict = lists.InTurns(candidates, (*corev1.Pod).GetNamespace)
	if len(e.plan.Evict) > maxEvictions {
		e.plan.Evict = e.plan.Evict[:maxEvictions]
		e.wake(e.now)
	}
}

// blame sets plan.Stays to the pod that keeps the node from being emptied, preferably a pod whose
// eviction was refused, and plan.StaysBecause to the reason.
func (e *emptying) blame() {
	var since time.Time
	for _, pod := range e.due {
		if e.Attempts == nil {
			break
		}
		refused, was := e.Attempts.Refused[EvictionGroup(pod)]
		// The choice does not depend on the latest attempt, so that every decision names the same
		// pod.
		if was && (e.plan.Stays == "" || cmp.Or(refused.Since.Compare(since), cmp.Compare(podName(pod), e.plan.Stays)) < 0) {
			since, e.plan.Stays, e.plan.StaysBecause = refused.Since, podName(pod), refused.Reason
		}
	}
	switch {
	case e.plan.Stays != "":
	case e.stuck != nil:
		e.plan.Stays = podName(e.stuck)
		e.plan.StaysBecause = fmt.Sprintf("it would come back, as it tolerates the taints of the closed node, and not %s: let it tolerate both or neither", e.stuckBecause.Taint.ToString())
	case e.leaving != nil && e.leaving.DeletionTimestamp.Time.Before(e.now):
		e.plan.Stays = podName(e.leaving)
		e.plan.StaysBecause = "it is deleted, its grace period is over, and it is still there: it has a finalizer, or the kubelet of the node does not work"
	}
}

// wake sets plan.Again so that the decision is repeated at the given time, but in no less than a
// second. It has no effect if the decision will be repeated earlier anyway.
func (e *emptying) wake(at time.Time) {
	wait := max(at.Sub(e.now), time.Second)
	if e.plan.Again == 0 || wait < e.plan.Again {
		e.plan.Again = wait
	}
}

func podName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// isStatic reports whether the pod is the mirror of a static pod.
func isStatic(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "Node"
}
