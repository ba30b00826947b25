// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/text"
)

// Bounds of the fields that the cache keeps of a workload. Users of a namespace fill these fields as
// they like.
const (
	// longestSelector is the maximum size of a selector, in bytes, and mostSelected the maximum number
	// of its labels, expressions and values.
	longestSelector = 2048
	mostSelected    = 64
	// longestText is the maximum length of a text of a Rollout, in bytes: more than a message in the
	// history of a ScheduledRestart may have.
	longestText = 2048
)

// boundSelector returns a selector, or a selector of all pods of the namespace if it exceeds the bounds.
// The owner references of the pods then decide which pods belong to the workload.
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

// keepExceeded returns the condition of a Deployment that has exceeded its progress deadline, without its
// message; nil if the deadline is not exceeded.
func keepExceeded(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == appsv1.DeploymentProgressing && c.Reason == deploymentExceeded {
			return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: deploymentExceeded}}
		}
	}
	return nil
}

// boundField returns the part of a field of a Rollout that is kept; nil if nothing is. A map is a selector,
// and every other field of an ordinary Rollout is a number, a flag or a short text.
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

// sizeOf returns the size of the texts of a JSON value, in bytes, and the number of its elements.
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
