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
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// term is a required affinity or anti-affinity term of a pod.
type term struct {
	// key is the node label that defines the topology domains.
	key      string
	selector labels.Selector
	// namespaces contains the namespaces of the selected pods; nil for all namespaces.
	namespaces sets.Set[string]
	// complete is false if the term depends on labels of namespaces, which a Cluster does not know,
	// or on a label that the pod does not have yet, such as the pod-template-hash of a pod
	// template. Such a term is parsed as if it selected all namespaces, and as if the label did not
	// matter, so that it selects too many pods rather than too few.
	complete bool
	// text identifies the term's topology key, selector and namespaces.
	text string
}

// newTerm parses a term of a pod.
func newTerm(pod *corev1.Pod, t *corev1.PodAffinityTerm) (term, error) {
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil {
		return term{}, fmt.Errorf("parse the selector of an affinity term: %w", err)
	}
	selector, matched := withKeys(selector, pod.Labels, t.MatchLabelKeys, selection.In)
	selector, mismatched := withKeys(selector, pod.Labels, t.MismatchLabelKeys, selection.NotIn)
	parsed := term{key: t.TopologyKey, selector: selector, complete: matched && mismatched}
	switch {
	case t.NamespaceSelector != nil:
		parsed.complete = parsed.complete && len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) == 0
	case len(t.Namespaces) > 0:
		parsed.namespaces = sets.New(t.Namespaces...)
	default:
		parsed.namespaces = sets.New(pod.Namespace)
	}
	parsed.text = strings.Join(append([]string{parsed.key, selector.String()}, sets.List(parsed.namespaces)...), "\x00")
	if parsed.namespaces == nil {
		parsed.text += "\x00*"
	}
	return parsed, nil
}

// newTerms parses the terms of a pod. Terms that the API server would reject are omitted.
func newTerms(pod *corev1.Pod, list []corev1.PodAffinityTerm) (terms []term) {
	for i := range list {
		if t, err := newTerm(pod, &list[i]); err == nil {
			terms = append(terms, t)
		}
	}
	return terms
}

// withKeys adds, for each of the label keys, a requirement that compares the label with the pod's
// value by the given operator. complete is false if the pod lacks one of the labels.
func withKeys(selector labels.Selector, of map[string]string, keys []string, operator selection.Operator) (_ labels.Selector, complete bool) {
	complete = true
	for _, key := range keys {
		value, has := of[key]
		if !has {
			complete = false
			continue
		}
		if requirement, err := labels.NewRequirement(key, operator, []string{value}); err == nil {
			selector = selector.Add(*requirement)
		}
	}
	return selector, complete
}

// matches reports whether the term selects a pod.
func (t *term) matches(pod *corev1.Pod) bool {
	return (t.namespaces == nil || t.namespaces.Has(pod.Namespace)) && t.selector.Matches(labels.Set(pod.Labels))
}

// allMatch reports whether there are terms, and each of them selects the pod.
func allMatch(terms []term, pod *corev1.Pod) bool {
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t term) bool { return !t.matches(pod) })
}

func affinityOf(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func antiAffinityOf(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
