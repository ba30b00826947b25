// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/budgets"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Reason identifies why draining a node would not remove a pod, or would harm the pod's workload.
type Reason string

// Reasons why a pod blocks the drain of its node.
const (
	// Budget means that a PodDisruptionBudget does not currently allow the eviction.
	Budget = Reason(tidekeeperv1.DrainBlockerBudget)
	// SeveralBudgets means that several PodDisruptionBudgets select the pod, in which case the API
	// server rejects every eviction.
	SeveralBudgets = Reason(tidekeeperv1.DrainBlockerSeveralBudgets)
	// Refused means that the API server rejected the eviction for a reason other than a budget,
	// such as a webhook that denies the eviction or does not respond. This is detected only by a
	// dry run of the eviction.
	Refused Reason = "Refused"
	// Terminating means that the pod was deleted and still exists after its grace period.
	Terminating = Reason(tidekeeperv1.DrainBlockerTerminating)
	// Finalizer means that the pod has finalizers, and will continue to exist after its deletion
	// until they are removed.
	Finalizer = Reason(tidekeeperv1.DrainBlockerFinalizer)
	// LongGrace means that the pod's termination grace period is longer than [MostGrace].
	LongGrace = Reason(tidekeeperv1.DrainBlockerLongGrace)
	// NoController means that no controller creates a replacement for the pod. kubectl drain needs
	// --force for such a pod.
	NoController = Reason(tidekeeperv1.DrainBlockerNoController)
	// LocalData means that the pod has emptyDir volumes, whose data is lost when the pod is
	// deleted. kubectl drain needs --delete-emptydir-data for such a pod.
	LocalData = Reason(tidekeeperv1.DrainBlockerLocalData)
	// LocalVolume means that the pod uses a PersistentVolume that cannot be used on any other node.
	LocalVolume Reason = "LocalVolume"
	// NoPlace means that the other nodes have no room for the pod's replacement.
	NoPlace = Reason(tidekeeperv1.DrainBlockerNoPlace)
)

// Reasons lists all reasons with descriptions for users, in display order.
var Reasons = []struct {
	Reason  Reason
	Meaning string
}{
	{Budget, "a PodDisruptionBudget does not allow the eviction now"},
	{SeveralBudgets, "more than one PodDisruptionBudget selects the pod: evictions always fail"},
	{Refused, "the API server refuses the eviction, as a webhook does (with --try only)"},
	{Terminating, "the pod should be gone already"},
	{Finalizer, "the pod stays until its finalizers are removed"},
	{LongGrace, "the pod may take longer than ten minutes to end"},
	{NoController, "nothing creates the pod again; kubectl drain needs --force"},
	{LocalData, "an emptyDir is deleted with the pod; kubectl drain needs --delete-emptydir-data"},
	{LocalVolume, "no other node can use its PersistentVolume"},
	{NoPlace, "the other nodes have no room for the pod that replaces it"},
}

// MostGrace is the longest termination grace period that is not reported as [LongGrace].
const MostGrace = 10 * time.Minute

// Blocker describes why draining a node would not remove some pods of a workload, or would harm the
// workload.
type Blocker struct {
	Reason    Reason `json:"reason"`
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"` // such as Deployment/web
	// Pods lists the names of the affected pods. It is empty for NoPlace, because the pods of a
	// workload are interchangeable.
	Pods []string `json:"pods,omitempty"`
	// Count is the number of affected pods. It is set even if Pods is empty.
	Count int `json:"count"`
	// Object is the object that causes the blocker, such as PodDisruptionBudget/web. It is empty if
	// the pod itself is the cause.
	Object string `json:"object,omitempty"`
	// Since is the time at which the reason for the blocker arose, or nil if it is unknown.
	Since *metav1.Time `json:"since,omitempty"`
	// Message describes the blocker. Advice suggests how to resolve it.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// World holds the PodDisruptionBudgets and volumes of a cluster that can keep pods on their nodes.
type World struct {
	budgets budgets.Index
	volumes Volumes
}

// NewWorld returns a World with the given PodDisruptionBudgets and volumes.
func NewWorld(list []policyv1.PodDisruptionBudget, volumes Volumes) *World {
	return &World{budgets.NewIndex(list), volumes}
}

// BudgetOf returns the PodDisruptionBudget that selects a pod. It returns nil if none does, or if
// several do, because the API server then rejects every eviction of the pod.
func (w *World) BudgetOf(pod *corev1.Pod) *policyv1.PodDisruptionBudget {
	if of := w.budgets.Of(pod); len(of) == 1 {
		return of[0]
	}
	return nil
}

// NeverAllows reports whether a PodDisruptionBudget that selects the pod allows no disruption even
// while all pods that it selects are healthy.
func (w *World) NeverAllows(pod *corev1.Pod) bool {
	return slices.ContainsFunc(w.budgets.Of(pod), func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.ExpectedPods > 0 && b.Status.DesiredHealthy >= b.Status.ExpectedPods
	})
}

// Leaves reports whether a drain of the pod's node has to remove the pod. It returns false for
// terminated pods, static pods and pods of DaemonSets.
func Leaves(pod *corev1.Pod) bool {
	if pods.IsTerminal(pod) {
		return false
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	return !isMirror(pod) && (controller == nil || controller.Kind != "DaemonSet" && controller.Kind != "Node")
}

// isMirror reports whether the pod is the mirror of a static pod.
func isMirror(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// Leaving returns the number of the given pods that a drain of their node has to remove.
func Leaving(running []*corev1.Pod) int {
	n := 0
	for _, pod := range running {
		if Leaves(pod) {
			n++
		}
	}
	return n
}

// Blockers returns the blockers of the pods that run on a node, sorted by reason and workload.
func (w *World) Blockers(node *corev1.Node, running []*corev1.Pod, now time.Time) []Blocker {
	var found groups
	for _, pod := range running {
		if !Leaves(pod) {
			continue
		}
		for _, b := range w.of(node, pod, now) {
			b.Namespace, b.Workload = pod.Namespace, pods.WorkloadName(pod)
			found.add(pod, b)
		}
	}
	return found.sorted()
}

// of returns the blockers of a single pod. Their namespace and workload are not set.
func (w *World) of(node *corev1.Node, pod *corev1.Pod, now time.Time) (all []Blocker) {
	if pod.DeletionTimestamp != nil {
		if !pod.DeletionTimestamp.After(now) {
			all = append(all, terminating(pod))
		}
		return all
	}
	if b := refusal(w.budgets.Of(pod), pod); b != nil {
		all = append(all, *b)
	}
	if names := finalizers(pod); len(names) > 0 {
		all = append(all, Blocker{
			Reason: Finalizer, Message: "stays after its deletion until it has no finalizer: " + strings.Join(names, ", "),
			Advice: "find out who removes the finalizer, and whether that is running",
		})
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil && isLongGrace(*grace) {
		all = append(all, Blocker{
			Reason: LongGrace, Message: fmt.Sprintf("may take %s to end: terminationGracePeriodSeconds is %d", time.Duration(*grace)*time.Second, *grace),
			Advice: "begin early, or lower the grace period",
		})
	}
	if !pods.IsReplaced(pod) {
		all = append(all, Blocker{
			Reason: NoController, Message: "no controller creates it again on another node",
			Advice: "move it by hand; kubectl drain deletes it with --force only",
		})
	}
	if volumes := emptyDirs(pod); len(volumes) > 0 {
		all = append(all, Blocker{
			Reason: LocalData, Message: "data on the node are deleted with the pod: emptyDir " + strings.Join(volumes, ", "),
			Advice: "make sure that the data are not needed; kubectl drain needs --delete-emptydir-data",
		})
	}
	return append(all, w.volumes.blockers(node, pod)...)
}

// Refusal is the error with which the API server rejected a pod's eviction in a dry run.
type Refusal struct {
	Pod     *corev1.Pod
	Message string
}

// Refusals converts rejected evictions to blockers, grouped by workload and message.
func Refusals(list []Refusal) []Blocker {
	var found groups
	slices.SortFunc(list, func(a, b Refusal) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	for _, r := range list {
		found.add(r.Pod, Blocker{
			Reason: Refused, Namespace: r.Pod.Namespace, Workload: pods.WorkloadName(r.Pod),
			// The pod's name is replaced, so that messages about different pods of a workload
			// become equal and can be grouped.
			Message: "the API server refuses the eviction: " + strings.ReplaceAll(r.Message, strconv.Quote(r.Pod.Name), "POD"),
			Advice:  "see who serves the webhook that it names, or try again",
		})
	}
	return found.sorted()
}

func terminating(pod *corev1.Pod) Blocker {
	b := Blocker{
		Reason: Terminating, Since: pod.DeletionTimestamp, Message: "is deleted, its grace period is over, and it is still there",
		Advice: "see whether the kubelet of the node works",
	}
	if len(pod.Finalizers) > 0 {
		b.Message += ": it has the finalizers " + strings.Join(pod.Finalizers, ", ")
		b.Advice = "find out who removes the finalizer, and whether that is running"
	}
	return b
}

// finalizers returns the pod's finalizers. It omits the finalizer with which the Job controller
// tracks the pods of a Job, because the Job controller removes that finalizer as soon as the pod
// has ended.
func finalizers(pod *corev1.Pod) []string {
	return slices.DeleteFunc(slices.Clone(pod.Finalizers), func(name string) bool {
		return name == batchv1.JobTrackingFinalizer && isOfJob(metav1.GetControllerOfNoCopy(pod))
	})
}

// isOfJob reports whether a pod's controller, which may be nil, is a Job.
func isOfJob(controller *metav1.OwnerReference) bool {
	return controller != nil && controller.Kind == "Job"
}

// emptyDirs returns the names of the pod's emptyDir volumes.
func emptyDirs(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.EmptyDir != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

// groups collects blockers, and merges blockers that differ only in their pods.
type groups struct{ list []Blocker }

func (g *groups) add(pod *corev1.Pod, b Blocker) {
	for i := range g.list {
		if other := &g.list[i]; other.Reason == b.Reason && other.Namespace == b.Namespace && other.Workload == b.Workload && other.Object == b.Object && other.Message == b.Message {
			other.Pods, other.Count = append(other.Pods, pod.Name), other.Count+1
			if b.Since != nil && other.Since != nil && b.Since.Before(other.Since) {
				other.Since = b.Since
			}
			return
		}
	}
	b.Pods, b.Count = []string{pod.Name}, 1
	g.list = append(g.list, b)
}

func (g *groups) sorted() []Blocker {
	for i := range g.list {
		slices.Sort(g.list[i].Pods)
	}
	Sort(g.list)
	return g.list
}

// Sort sorts blockers in the order of [Reasons], then by namespace and workload.
func Sort(list []Blocker) {
	slices.SortStableFunc(list, func(a, b Blocker) int {
		return cmp.Or(
			cmp.Compare(orderOf(a.Reason), orderOf(b.Reason)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message),
		)
	})
}

// orderOf returns the position of a reason in [Reasons].
func orderOf(of Reason) int {
	for i := range Reasons {
		if Reasons[i].Reason == of {
			return i
		}
	}
	return len(Reasons)
}
