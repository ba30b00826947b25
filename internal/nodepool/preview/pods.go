// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Possible values of [Pod.Outcome].
const (
	// OutcomeEvicted means that a taint evicts the pod from its node.
	OutcomeEvicted = "Evicted"
	// OutcomeNotReschedulable means that the pod keeps running, but the scheduler would not place
	// its replacement on the node.
	OutcomeNotReschedulable = "NotReschedulable"
	// OutcomeNotRecreatable means that the pod keeps running, but the API server would reject its
	// replacement, because the pod's RuntimeClass has been deleted.
	OutcomeNotRecreatable = "NotRecreatable"
)

// Pod describes the effect of a change of pools on a pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	// Owner is the workload that the pod belongs to, such as Deployment/web. It is empty if no
	// controller would replace the pod.
	Owner   string `json:"owner,omitempty"`
	Outcome string `json:"outcome"` // Evicted, NotReschedulable or NotRecreatable
	// WithinBudgets is true for a pod that is evicted within its PodDisruptionBudgets before the
	// NoExecute taint is added to its node.
	WithinBudgets bool `json:"withinBudgets,omitempty"`
	// AfterSeconds is the number of seconds for which the pod tolerates the taint that evicts it.
	// It is 0 for a pod that is evicted at once or not at all.
	AfterSeconds int64 `json:"afterSeconds,omitempty"`
	// Because is the cause of the effect on the pod: a taint, a RuntimeClass, or "labels" if the
	// node would lack labels required by the pod's node affinity or node selector.
	Because string `json:"because"`
	// NotRecreatable is set for an evicted pod whose replacement the API server would reject. It
	// names the cause, a RuntimeClass that is to be deleted.
	NotRecreatable string `json:"notRecreatable,omitempty"`
	// Static is true for a static pod, which the kubelet runs independently of the API server.
	Static bool `json:"static,omitempty"`
}

// affectsPods reports whether the changes of the node may affect its pods. Changes of annotations
// do not affect pods.
func (n *Node) affectsPods() bool {
	return slices.ContainsFunc(n.Changes, func(c Change) bool { return c.Kind != setting.Annotation })
}

// NodesWithAffectedPods returns the names of the nodes whose pods the caller has to pass to [Pods].
func NodesWithAffectedPods(nodes []Node) []string {
	var names []string
	for i := range nodes {
		if nodes[i].affectsPods() {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

// Pods returns the effects on pods of the given node changes, sorted by outcome, namespace, owner
// and name. Unaffected pods, and pods that are already being deleted, are left out.
func Pods(nodes []Node, list []corev1.Pod) []Pod {
	changed := map[string]*Node{}
	for i := range nodes {
		if nodes[i].affectsPods() {
			changed[nodes[i].Name] = &nodes[i]
		}
	}
	var previews []Pod
	for i := range list {
		pod := &list[i]
		node, affected := changed[pod.Spec.NodeName]
		if !affected || pods.IsTerminal(pod) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if p, ok := outcomeOf(pod, node); ok {
			previews = append(previews, p)
		}
	}
	slices.SortFunc(previews, comparePods)
	return previews
}

func comparePods(a, b Pod) int {
	return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
}

// WithDeletedRuntimeClasses adds to the result of [Pods] the pods whose RuntimeClass is deleted,
// because their controllers could not create them again. If the result already contains such a pod,
// its entry is changed.
func WithDeletedRuntimeClasses(previews []Pod, deleted []string, list []corev1.Pod) []Pod {
	type key struct{ namespace, name string }
	known := map[key]int{}
	for i, p := range previews {
		known[key{p.Namespace, p.Name}] = i
	}
	for i := range list {
		pod := &list[i]
		class := pod.Spec.RuntimeClassName
		if class == nil || !slices.Contains(deleted, *class) || pods.IsTerminal(pod) || !pod.DeletionTimestamp.IsZero() || workloadOf(pod) == "" {
			continue
		}
		p := Pod{
			Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Owner: workloadOf(pod),
			Outcome: OutcomeNotRecreatable, Because: "RuntimeClass " + *class,
		}
		switch i, listed := known[key{pod.Namespace, pod.Name}]; {
		case !listed:
			previews = append(previews, p)
		case previews[i].Outcome == OutcomeNotReschedulable:
			previews[i] = p
		default:
			previews[i].NotRecreatable = p.Because
		}
	}
	slices.SortFunc(previews, comparePods)
	return previews
}

// outcomeOf returns the effect of the node's changes on a pod. It returns false if there is no
// effect.
func outcomeOf(pod *corev1.Pod, node *Node) (Pod, bool) {
	before, after := node.before, node.after
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	p := Pod{Namespace: pod.Namespace, Name: pod.Name, Node: after.Name, Owner: workloadOf(pod), Static: static}

	delayBefore, evictedBefore := plan.EvictionDelay(pod, noExecuteTaintsOn(before))
	delay, evicted := plan.EvictionDelay(pod, noExecuteTaintsOn(after))
	switch {
	case evicted && (!evictedBefore || delay < delayBefore):
		p.Outcome, p.AfterSeconds = OutcomeEvicted, int64(delay/time.Second)
		_, deleted := plan.EvictionDelay(pod, slices.DeleteFunc(noExecuteTaintsOn(after), func(t corev1.Taint) bool { return slices.Contains(node.gentle, t) }))
		p.WithinBudgets = !deleted && !static
		for _, t := range noExecuteTaintsOn(after) {
			if alone, evicts := plan.EvictionDelay(pod, []corev1.Taint{t}); evicts && alone == delay {
				p.Because = "taint " + t.ToString()
				break
			}
		}
		return p, true
	case evictedBefore, static, p.Owner == "":
		// There is no effect: the pod would be evicted even without the change, or it is static, or
		// no controller would replace it.
		return p, false
	}
	if blockedBy(pod, before) != "" {
		return p, false
	}
	p.Outcome, p.Because = OutcomeNotReschedulable, blockedBy(pod, after)
	return p, p.Because != ""
}

// blockedBy returns the taint that prevents the scheduler from placing the pod on the node, or
// "labels" if the node's labels prevent it, or "" if nothing does.
func blockedBy(pod *corev1.Pod, node *corev1.Node) string {
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; nodes.Blocks(t, pod.Spec.Tolerations) {
			return "taint " + t.ToString()
		}
	}
	// As in the scheduler, an invalid affinity matches no node.
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return "labels"
	}
	return ""
}

// noExecuteTaintsOn returns the NoExecute taints of a node.
func noExecuteTaintsOn(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectNoExecute })
}

// workloadOf returns the workload of a pod, or "" if no controller would replace the pod.
func workloadOf(pod *corev1.Pod) string {
	if !pods.IsReplaced(pod) {
		return ""
	}
	return pods.WorkloadName(pod)
}
