// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// nodePoolSpec is the spec of the original operator's NodePool. It has no selector: the members are
// the nodes with the label node-role.kubernetes.io/<name>, which is also the default in Tidekeeper.
type nodePoolSpec struct {
	Labels  map[string]string `json:"labels"`
	Taints  []corev1.Taint    `json:"taints"`
	Handler string            `json:"handler"`
}

// nodePool converts a NodePool of the original operator, and adds the converted object and remarks
// to the result.
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
		r.leftOut("spec.handler", fmt.Sprintf("%.64q is not a handler name", spec.Handler), "set spec.handler, in lower-case letters, digits and '-'")
	default:
		pool.Spec.WithHandler(spec.Handler)
	}
	result.Pools = append(result.Pools, pool)
	result.handOverClass(r.object, pool)
}

func poolLabels(pool string, labels map[string]string, r *remarks) map[string]tidekeeperv1.LabelValue {
	result := map[string]tidekeeperv1.LabelValue{}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		field := index("spec.labels", k)
		switch {
		case len(validation.IsQualifiedName(k)) > 0:
			r.leftOut(field, "is not a label key", "letters, digits, '-', '_' and '.', after an optional DNS prefix and '/'")
		case len(validation.IsValidLabelValue(labels[k])) > 0:
			r.leftOut(field, fmt.Sprintf("%.64q is not a label value", labels[k]), "at most 63 letters, digits, '-', '_' and '.'")
		case tidekeeperv1.GuardedLabels.Has(k):
			r.leftOut(field, "belongs to the kubelet, the cloud provider or Tidekeeper, and is refused", "let its owner set it")
		case k == tidekeeperv1.RoleLabelPrefix+pool:
			r.leftOut(field, "makes a node a member of this pool, and is refused", "set it on the nodes that are to be members")
		case len(result) == tidekeeperv1.MaxPoolLabels:
			r.leftOut(field, fmt.Sprintf("a pool has at most %d labels", tidekeeperv1.MaxPoolLabels), "put the rest into another pool with the same selector")
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
			r.leftOut(field, fmt.Sprintf("%.320q is not a taint key", t.Key), "letters, digits, '-', '_' and '.', after an optional DNS prefix and '/'")
			continue
		case len(validation.IsValidLabelValue(t.Value)) > 0:
			r.leftOut(field, fmt.Sprintf("%.64q is not a taint value", t.Value), "at most 63 letters, digits, '-', '_' and '.'")
			continue
		case t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectPreferNoSchedule && t.Effect != corev1.TaintEffectNoExecute:
			r.leftOut(field, fmt.Sprintf("%.64q is not an effect", t.Effect), "NoSchedule, PreferNoSchedule or NoExecute")
			continue
		case tidekeeperv1.GuardedTaints.Has(t.Key):
			r.leftOut(field, t.Key+" belongs to the node lifecycle controller, the cloud provider or Tidekeeper, and is refused", "let its owner set it")
			continue
		case seen[identity{t.Key, t.Effect}]:
			r.leftOut(field, t.Key+":"+string(t.Effect)+" appears twice, and a node has it once", "the first is taken")
			continue
		case len(result) == tidekeeperv1.MaxPoolTaints:
			r.leftOut(field, fmt.Sprintf("a pool has at most %d taints", tidekeeperv1.MaxPoolTaints), "put the rest into another pool with the same selector")
			continue
		}
		if t.TimeAdded != nil {
			r.leftOut(field+".timeAdded", "is set on each node when the taint is added", "")
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

// ownedBy adds the pool's labels and taints to an ownership record, the value of a node's ownership
// annotation.
func ownedBy(record ownership.Record, pool *applyv1.NodePoolApplyConfiguration) {
	for key, value := range pool.Spec.Labels {
		record.Add(*pool.Name, setting.LabelKey(key), string(value))
	}
	for _, t := range pool.Spec.Taints {
		value := ""
		if t.Value != nil {
			value = string(*t.Value)
		}
		record.Add(*pool.Name, setting.TaintKey(*t.Key, *t.Effect), value)
	}
}

// handOverNodes adds commands that annotate nodes, so that the converted pools own the labels and
// taints that the original operator set. Without an owner, no pool would ever remove them. A node
// has a single ownership annotation for all its pools, so each node must match only one command.
// There is a command for the nodes that are only in a given pool, and for the nodes in a given pair
// of pools. A remark covers nodes in more pools. `described` maps pool names to descriptions of the
// original pools.
func (result *Result) handOverNodes(described map[string]string) {
	const why = "settings that the original has put on nodes stay there when the pool is deleted, unless the ownership record names the pool"
	var names []string
	all := ownership.Record{}
	for _, pool := range result.Pools {
		ownedBy(all, pool)
		if len(all[*pool.Name]) > 0 {
			names = append(names, *pool.Name)
		}
	}
	command := func(object string, pools ...string) {
		record, selector := ownership.Record{}, []string{}
		for _, name := range pools {
			record[name] = all[name]
			selector = append(selector, tidekeeperv1.RoleLabelPrefix+name)
		}
		for _, name := range names {
			if !slices.Contains(pools, name) {
				selector = append(selector, "!"+tidekeeperv1.RoleLabelPrefix+name)
			}
		}
		result.ManualSteps = append(result.ManualSteps, ManualStep{
			Object: object, Why: why,
			Line: kubectl("annotate", "nodes", "-l", strings.Join(selector, ","), tidekeeperv1.OwnershipAnnotation+"="+record.String()),
		})
	}
	for i, first := range names {
		command(described[first], first)
		for _, second := range names[i+1:] {
			command(described[first]+" and "+described[second], first, second)
		}
	}
	if len(names) > 2 {
		r := &remarks{object: fmt.Sprintf("%d NodePools", len(names))}
		r.note("", "nodes in three or more pools get no ownership record", "annotate them by hand with "+tidekeeperv1.OwnershipAnnotation+", which has an entry for each pool")
		result.Remarks = append(result.Remarks, r.list...)
	}
}

// handOverClass adds the command that makes the converted pool the owner of the RuntimeClass that
// the original operator created.
func (result *Result) handOverClass(object string, pool *applyv1.NodePoolApplyConfiguration) {
	name := *pool.Name
	if pool.Spec.Handler != nil {
		uid := "$(" + kubectl("get", poolsResource, name, "-o", "jsonpath={.metadata.uid}") + ")"
		owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"NodePool","name":%q,"controller":true,"blockOwnerDeletion":true,"uid":"`,
			tidekeeperv1.SchemeGroupVersion, name)
		result.ManualSteps = append(result.ManualSteps, ManualStep{
			Object: object, Why: "a RuntimeClass that the original created is not the pool's, and is deleted with the original",
			Line: kubectl("patch", "runtimeclass", tidekeeperv1.RuntimeClassPrefix+name, "--type=merge", "-p") +
				" " + quote(owner) + `"` + uid + `"` + quote(`"}]}}`),
		})
	}
}
