// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	ownAntiAffinity    = "anti-affinity to other pods"
	othersAntiAffinity = "anti-affinity of other pods"
)

// repels holds the required anti-affinity terms of running pods. They can keep a new pod away from
// nodes even if the new pod itself has no affinity. repels maps the namespace of a new pod to the
// terms' label selectors; selectors under "" apply to all namespaces.
type repels map[string][]labels.Selector

// add adds a running pod's anti-affinity terms.
func (r repels) add(pod *corev1.Pod) {
	for _, term := range antiAffinityOf(pod) {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			continue // The API server does not accept invalid selectors.
		}
		namespaces := term.Namespaces
		switch {
		case term.NamespaceSelector != nil:
			namespaces = []string{""}
		case len(namespaces) == 0:
			namespaces = []string{pod.Namespace}
		}
		for _, namespace := range namespaces {
			r[namespace] = append(r[namespace], selector)
		}
	}
}

// matches reports whether a running pod's anti-affinity may keep the given new pod away from some
// nodes.
func (r repels) matches(pod *corev1.Pod) bool {
	matches := func(s labels.Selector) bool { return s.Matches(labels.Set(pod.Labels)) }
	return slices.ContainsFunc(r[""], matches) || pod.Namespace != "" && slices.ContainsFunc(r[pod.Namespace], matches)
}

func antiAffinityOf(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// constraintsOf returns a key that is equal for pods with the same tolerations, node selector and
// affinity.
func constraintsOf(spec *corev1.PodSpec) string {
	var key strings.Builder
	for _, t := range spec.Tolerations {
		for _, part := range []string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	if len(spec.NodeSelector) > 0 {
		fmt.Fprint(&key, spec.NodeSelector)
	}
	if spec.Affinity != nil {
		key.WriteString(spec.Affinity.String())
	}
	return key.String()
}
