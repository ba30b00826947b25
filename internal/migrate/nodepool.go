// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// nodePoolSpec is the spec of the original's NodePool. Its members are the nodes
// with the label node-role.kubernetes.io/<name>, as those of ours without a
// selector.
type nodePoolSpec struct {
	Labels  map[string]string `json:"labels"`
	Taints  []corev1.Taint    `json:"taints"`
	Handler string            `json:"handler"`
}

// The bounds of the CRD.
const (
	maxLabels = 64
	maxTaints = 32
)

// nodePool converts a NodePool.
func (result *Result) nodePool(o Object) {
	r := &remarks{object: describe(o)}
	defer func() { result.Remarks = append(result.Remarks, r.list...) }()
	var spec nodePoolSpec
	if !readSpec(o, &spec, r) {
		return
	}
	name := o.GetName()
	labels := poolLabels(name, spec.Labels, r)
	taints := poolTaints(spec.Taints, r)
	pool := applyv1.NodePool(name)
	metaLabels, annotations := carried(o, r)
	pool.WithLabels(metaLabels).WithAnnotations(annotations)
	pool.WithSpec(applyv1.NodePoolSpec().WithLabels(labels).WithTaints(taints...))
	switch {
	case spec.Handler == "":
	case len(validation.IsDNS1123Label(spec.Handler)) > 0:
		r.leftOut("spec.handler", fmt.Sprintf("%.64q is no name of a handler", spec.Handler), "set spec.handler, in lower-case letters, digits and '-'")
	default:
		pool.Spec.WithHandler(spec.Handler)
	}
	result.Pools = append(result.Pools, pool)
	result.handOver(r.object, pool)
}

func poolLabels(pool string, labels map[string]string, r *remarks) map[string]tidekeeperv1.LabelValue {
	result := map[string]tidekeeperv1.LabelValue{}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		field := index("spec.labels", k)
		switch {
		case len(validation.IsQualifiedName(k)) > 0:
			r.leftOut(field, "is no label key", "letters, digits, '-', '_' and '.', after an optional DNS prefix and '/'")
		case len(validation.IsValidLabelValue(labels[k])) > 0:
			r.leftOut(field, fmt.Sprintf("%.64q is no label value", labels[k]), "at most 63 letters, digits, '-', '_' and '.'")
		case among(guardedLabels, k):
			r.leftOut(field, "belongs to the kubelet, the cloud provider or Tidekeeper, and is refused", "have whoever owns it set it")
		case k == tidekeeperv1.RoleLabelPrefix+pool:
			r.leftOut(field, "makes a node a member of this very pool, and is refused", "set it on the nodes that are to be members")
		case len(result) == maxLabels:
			r.leftOut(field, fmt.Sprintf("a pool has at most %d labels", maxLabels), "put the rest into another pool with the same selector")
		default:
			result[k] = tidekeeperv1.LabelValue(labels[k])
		}
	}
	return result
}

func poolTaints(taints []corev1.Taint, r *remarks) []*applyv1.TaintApplyConfiguration {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[identity]bool{}
	var result []*applyv1.TaintApplyConfiguration
	for i, t := range taints {
		field := fmt.Sprintf("spec.taints[%d]", i)
		switch {
		case len(validation.IsQualifiedName(t.Key)) > 0:
			r.leftOut(field, fmt.Sprintf("%.320q is no taint key", t.Key), "letters, digits, '-', '_' and '.', after an optional DNS prefix and '/'")
			continue
		case len(validation.IsValidLabelValue(t.Value)) > 0:
			r.leftOut(field, fmt.Sprintf("%.64q is no taint value", t.Value), "at most 63 letters, digits, '-', '_' and '.'")
			continue
		case t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectPreferNoSchedule && t.Effect != corev1.TaintEffectNoExecute:
			r.leftOut(field, fmt.Sprintf("%.64q is no effect", t.Effect), "NoSchedule, PreferNoSchedule or NoExecute")
			continue
		case among(guardedTaints, t.Key):
			r.leftOut(field, t.Key+" belongs to the node lifecycle controller, the cloud provider or Tidekeeper, and is refused", "have whoever owns it set it")
			continue
		case seen[identity{t.Key, t.Effect}]:
			r.leftOut(field, t.Key+":"+string(t.Effect)+" is there twice, and a node has it once", "the first is taken")
			continue
		case len(result) == maxTaints:
			r.leftOut(field, fmt.Sprintf("a pool has at most %d taints", maxTaints), "put the rest into another pool with the same selector")
			continue
		}
		if t.TimeAdded != nil {
			r.leftOut(field+".timeAdded", "is noted on each node when the taint is put there", "")
		}
		seen[identity{t.Key, t.Effect}] = true
		taint := applyv1.Taint().WithKey(t.Key).WithEffect(t.Effect)
		if t.Value != "" {
			taint.WithValue(tidekeeperv1.LabelValue(t.Value))
		}
		result = append(result, taint)
	}
	return result
}

// handOver writes the commands that make over to the pool what the original has
// put into the cluster: without them it stays, but is nobody's.
func (result *Result) handOver(object string, pool *applyv1.NodePoolApplyConfiguration) {
	name := *pool.Name
	// As the annotation has it that says what pools have put on a node.
	var held struct {
		Labels map[string]tidekeeperv1.LabelValue `json:"labels,omitempty"`
		Taints map[string]string                  `json:"taints,omitempty"`
	}
	held.Labels, held.Taints = pool.Spec.Labels, map[string]string{}
	for _, t := range pool.Spec.Taints {
		value := ""
		if t.Value != nil {
			value = string(*t.Value)
		}
		held.Taints[*t.Key+":"+string(*t.Effect)] = value
	}
	if len(held.Labels)+len(held.Taints) > 0 {
		record, err := json.Marshal(map[string]any{name: held})
		if err != nil {
			panic(err) // strings can always be marshalled
		}
		result.Commands = append(result.Commands, Command{
			Object: object, Why: "what the original has put on nodes stays there when the pool goes, unless it is on record as the pool's",
			Line: kubectl("annotate", "nodes", "-l", tidekeeperv1.RoleLabelPrefix+name, tidekeeperv1.RecordAnnotation+"="+string(record)),
		})
	}
	if pool.Spec.Handler != nil {
		uid := "$(" + kubectl("get", poolsResource, name, "-o", "jsonpath={.metadata.uid}") + ")"
		owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"NodePool","name":%q,"controller":true,"blockOwnerDeletion":true,"uid":"`,
			tidekeeperv1.SchemeGroupVersion, name)
		result.Commands = append(result.Commands, Command{
			Object: object, Why: "a RuntimeClass that the original made is not the pool's, and is deleted with the original",
			Line: kubectl("patch", "runtimeclass", tidekeeperv1.RuntimeClassPrefix+name, "--type=merge", "-p") +
				" " + quote(owner) + `"` + uid + `"` + quote(`"}]}}`),
		})
	}
}
