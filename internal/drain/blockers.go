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

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Reason says why pods would not leave a node, or not without harm.
type Reason string

// The reasons.
const (
	// Budget means that a PodDisruptionBudget does not allow the eviction now.
	Budget Reason = "Budget"
	// SeveralBudgets means that more than one PodDisruptionBudget selects the pod, so that the API server
	// refuses each eviction.
	SeveralBudgets Reason = "SeveralBudgets"
	// Refused means that the API server refused the eviction for another reason, such as a webhook that denies
	// it or does not answer. Only a dry run finds it.
	Refused Reason = "Refused"
	// Terminating means that the pod is being deleted, and that its grace period is over.
	Terminating Reason = "Terminating"
	// Finalizer means that the pod stays after its deletion until its finalizers are removed.
	Finalizer Reason = "Finalizer"
	// LongGrace means that the pod may take longer than [MostGrace] to end.
	LongGrace Reason = "LongGrace"
	// NoController means that nothing creates another pod in its place. kubectl drain needs --force for it.
	NoController Reason = "NoController"
	// LocalData means that the pod keeps data on the node, in an emptyDir, that are deleted with the pod.
	// kubectl drain needs --delete-emptydir-data for it.
	LocalData Reason = "LocalData"
	// LocalVolume means that the pod uses a PersistentVolume that no other node can use.
	LocalVolume Reason = "LocalVolume"
	// NoPlace means that the other nodes have no room for the pod that replaces it.
	NoPlace Reason = tidekeeperv1.ReasonNoPlace
)

// Reasons are all reasons, each with its meaning for people, in the order in which they are shown.
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

// MostGrace is the longest grace period that needs no mention.
const MostGrace = 10 * time.Minute

// Blocker is a reason for which pods of a workload would not leave a node, or not without harm.
type Blocker struct {
	Reason    Reason `json:"reason"`
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"` // such as Deployment/web
	// Pods are the names of the pods. With NoPlace they are not known, as the pods are alike.
	Pods []string `json:"pods,omitempty"`
	// Count is the number of pods.
	Count int `json:"count"`
	// Object is the other object that matters, such as PodDisruptionBudget/web; "" if there is none.
	Object string `json:"object,omitempty"`
	// Since is when the reason began to hold, if that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Message says what holds, and Advice what to do about it.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// World has the objects, beside the pods, on which it depends whether pods leave their node.
type World struct {
	budgets budgets
	volumes Volumes
}

// NewWorld returns a world with these PodDisruptionBudgets and volumes.
func NewWorld(list []policyv1.PodDisruptionBudget, volumes Volumes) *World {
	return &World{budgetsOf(list), volumes}
}

// Leaves reports whether draining the node of a pod concerns the pod: pods of DaemonSets and static pods stay,
// and pods that have ended do not matter.
func Leaves(pod *corev1.Pod) bool {
	if pods.IsTerminal(pod) {
		return false
	}
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return false
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller == nil || controller.Kind != "DaemonSet" && controller.Kind != "Node"
}

// Blockers returns the blockers among the pods of a node, by reason and workload.
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

// of returns the blockers of a pod.
func (w *World) of(node *corev1.Node, pod *corev1.Pod, now time.Time) (all []Blocker) {
	if pod.DeletionTimestamp != nil {
		if !pod.DeletionTimestamp.After(now) {
			all = append(all, terminating(pod))
		}
		return all
	}
	if b := w.budgets.refusal(pod); b != nil {
		all = append(all, *b)
	}
	if len(pod.Finalizers) > 0 {
		all = append(all, Blocker{
			Reason: Finalizer, Message: "stays after its deletion until it has no finalizer: " + strings.Join(pod.Finalizers, ", "),
			Advice: "find out who removes the finalizer, and whether that is running",
		})
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil && time.Duration(*grace)*time.Second > MostGrace {
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

// Refusal is the answer of the API server to the eviction of a pod in a dry run.
type Refusal struct {
	Pod     *corev1.Pod
	Message string
}

// Refusals returns the blockers for the refusals of the API server, by workload.
func Refusals(list []Refusal) []Blocker {
	var found groups
	slices.SortFunc(list, func(a, b Refusal) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	for _, r := range list {
		found.add(r.Pod, Blocker{
			Reason: Refused, Namespace: r.Pod.Namespace, Workload: pods.WorkloadName(r.Pod),
			// A message that names the pod would keep pods that are alike apart.
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

// emptyDirs returns the names of the volumes of a pod that are directories on its node.
func emptyDirs(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.EmptyDir != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

// groups joins blockers that differ in the pod only.
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

// Sort sorts blockers by reason and workload.
func Sort(list []Blocker) {
	order := map[Reason]int{}
	for i, r := range Reasons {
		order[r.Reason] = i
	}
	slices.SortStableFunc(list, func(a, b Blocker) int {
		return cmp.Or(
			cmp.Compare(order[a.Reason], order[b.Reason]),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message),
		)
	})
}
