// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// What becomes of a pod.
const (
	// FateEvicted: a taint drives it off its node.
	FateEvicted = "Evicted"
	// FateStranded: it stays, but the scheduler would not put another like it
	// onto the node, so that it is missing there once it ends.
	FateStranded = "Stranded"
)

// PodPreview is what becomes of a pod on a node that changes.
type PodPreview struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	// Owner is the workload, such as Deployment/web; empty if there is none.
	Owner string `json:"owner,omitempty"`
	Fate  string `json:"fate"` // Evicted or Stranded
	// AfterSeconds is for how long the pod tolerates the taint that evicts it.
	AfterSeconds int64 `json:"afterSeconds,omitempty"`
	// Because of this taint, or of "labels" that the pod asks its node for.
	Because string `json:"because"`
	// Static: the kubelet runs the pod, whatever the API server has.
	Static bool `json:"static,omitempty"`
}

// movesPods tells whether the change of a node can have to do with its pods.
func (p *NodePreview) movesPods() bool {
	return slices.ContainsFunc(p.Changes, func(c SlotPreview) bool { return c.Kind != string(annotation) })
}

// NodesThatMovePods returns the names of the nodes of which PreviewPods wants to know
// the pods.
func NodesThatMovePods(nodes []NodePreview) []string {
	var names []string
	for i := range nodes {
		if nodes[i].movesPods() {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

// PreviewPods returns what becomes of the pods, if the nodes become what their
// previews say, in the order of namespaces, owners and names. Pods for which
// nothing changes, and those that are on their way out already, are left out.
func PreviewPods(nodes []NodePreview, pods []corev1.Pod) []PodPreview {
	changed := map[string]*NodePreview{}
	for i := range nodes {
		if nodes[i].movesPods() {
			changed[nodes[i].Name] = &nodes[i]
		}
	}
	var previews []PodPreview
	for i := range pods {
		pod := &pods[i]
		node, touched := changed[pod.Spec.NodeName]
		if !touched || terminal(pod) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if p, ok := fate(pod, node.before, node.after); ok {
			previews = append(previews, p)
		}
	}
	slices.SortFunc(previews, func(a, b PodPreview) int {
		return cmp.Or(cmp.Compare(a.Fate, b.Fate), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
	})
	return previews
}

// fate returns what becomes of a pod, if its node changes.
func fate(pod *corev1.Pod, before, after *corev1.Node) (PodPreview, bool) {
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	p := PodPreview{Namespace: pod.Namespace, Name: pod.Name, Node: after.Name, Owner: ownerOf(pod), Static: static}

	wait, goes := eviction(pod, evictingOn(before))
	sooner, goesNow := eviction(pod, evictingOn(after))
	switch {
	case goesNow && (!goes || sooner < wait):
		p.Fate, p.AfterSeconds = FateEvicted, int64(sooner/time.Second)
		for _, t := range evictingOn(after) {
			if alone, goes := eviction(pod, []corev1.Taint{t}); goes && alone == sooner {
				p.Because = "taint " + t.ToString()
				break
			}
		}
		return p, true
	case goes, static, p.Owner == "":
		// It goes anyway, or nobody would schedule another.
		return p, false
	}
	if obstacle(pod, before) != "" {
		return p, false
	}
	p.Fate, p.Because = FateStranded, obstacle(pod, after)
	return p, p.Because != ""
}

// obstacle says what keeps the scheduler from putting a pod onto a node, of what
// pools can put there; "" if nothing does.
func obstacle(pod *corev1.Pod, node *corev1.Node) string {
	keepsAway := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	if t, found := schedulinghelper.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, keepsAway, true); found {
		return "taint " + t.ToString()
	}
	// What cannot be parsed matches no node, as for the scheduler.
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return "labels"
	}
	return ""
}

// evictingOn returns the taints of a node that evict.
func evictingOn(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectNoExecute })
}

// ownerOf names the workload of a pod. A ReplicaSet is named after its
// Deployment and the hash of the pod's template, so it need not be asked for.
func ownerOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind == "Node" {
		return ""
	}
	kind, name := owner.Kind, owner.Name
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; kind == "ReplicaSet" && hash != "" {
		if deployment, ok := strings.CutSuffix(name, "-"+hash); ok {
			kind, name = "Deployment", deployment
		}
	}
	return kind + "/" + name
}
