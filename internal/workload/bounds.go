// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/text"
)

// The most that is kept of a workload, whose fields users of one namespace fill as they like.
const (
	// longestSelector is how many bytes of a selector are kept, and mostSelected how many
	// labels, expressions and values.
	longestSelector = 2048
	mostSelected    = 64
	// longestText is how many bytes are kept of a text that a Rollout has: more than a record of a
	// restart takes of its message.
	longestText = 2048
)

// boundSelector returns a selector, or one that selects all pods of the namespace if it is larger than
// what is kept: which of them are those of the workload, their owners say.
func boundSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	selected := len(s.MatchLabels) + len(s.MatchExpressions)
	for i := range s.MatchExpressions {
		selected += len(s.MatchExpressions[i].Values)
	}
	if selected > mostSelected || s.Size() > longestSelector {
		return &metav1.LabelSelector{}
	}
	return s
}

// keepExceeded keeps of the conditions of a Deployment whether it has exceeded its deadline.
func keepExceeded(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == appsv1.DeploymentProgressing && c.Reason == deploymentExceeded {
			return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: deploymentExceeded}}
		}
	}
	return nil
}

// boundField returns what is kept of a field of a Rollout, nil for nothing. Whatever has another shape
// than a selector is a number, a flag or a short text, in a Rollout that means no harm.
func boundField(value any) any {
	switch v := value.(type) {
	case string:
		return text.Shorten(v, longestText)
	case map[string]any:
		if bytes, parts := sizeOf(v); parts > mostSelected || bytes > longestSelector {
			return map[string]any{}
		}
	case []any:
		return nil
	}
	return value
}

// sizeOf returns how many bytes a value of JSON has in its texts, and how many parts.
func sizeOf(value any) (bytes, parts int) {
	add := func(v any) {
		b, p := sizeOf(v)
		bytes, parts = bytes+b, parts+p
	}
	switch v := value.(type) {
	case string:
		return len(v), 1
	case map[string]any:
		for key, element := range v {
			bytes += len(key)
			add(element)
		}
	case []any:
		for _, element := range v {
			add(element)
		}
	}
	return bytes, parts + 1
}
