// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cache/optional"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Objects returns an empty object for each of the given kinds of workloads.
func Objects(kinds []*workload.Kind) []client.Object {
	objects := make([]client.Object, len(kinds))
	for i, k := range kinds {
		objects[i] = k.New()
	}
	return objects
}

// WorkloadRules returns rules that grant the given verbs on all kinds of workloads, one rule for
// each API group. All of them have the given reason.
func WorkloadRules(verbs []string, reason string) []Rule {
	var rules []Rule
	for _, k := range workload.Kinds {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.Group == k.Group })
		if i < 0 {
			i = len(rules)
			rules = append(rules, Rule{Group: k.Group, Verbs: verbs, Reason: reason})
		}
		rules[i].Resources = append(rules[i].Resources, k.Resource)
	}
	return rules
}

// OptionalRule returns the rule that grants the right to watch the CRDs of optional workload kinds.
func OptionalRule() Rule {
	rule := Rule{
		Group: optional.CustomResourceDefinitions.Group, Resources: []string{optional.CustomResourceDefinitions.Resource}, Verbs: []string{"list", "watch"},
		Reason: "Detects when the CRD of an optional kind is installed or removed. With --namespaces, discovery is polled every half minute instead.",
	}
	for _, k := range workload.Optional() {
		rule.Names = append(rule.Names, optional.CRDName(k.GroupVersionKind))
	}
	return rule
}
