// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/text"
)

// Limits for the fields of a workload that the cache keeps. Without limits, users of a single
// namespace could fill the manager's memory.
const (
	// longestSelector is the maximum size of a selector, in bytes. mostSelected is the maximum
	// number of labels, expressions and values in a selector.
	longestSelector = 2048
	mostSelected    = 64
	// longestText is the maximum length, in bytes, of a string kept from a Rollout. It exceeds the
	// maximum length of a message in the history of a ScheduledRestart.
	longestText = 2048
)

// boundSelector returns s, or a selector that matches all pods of the namespace if s exceeds the
// limits. If s is replaced, the pods' owner references determine which pods belong to the workload.
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

// keepProgress keeps only the condition "Progressing" of a rollout in progress, with the time of
// the last progress, and the reason if the Deployment has exceeded its progress deadline. It
// returns nil if the last rollout is complete.
func keepProgress(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	for i := range conditions {
		c := &conditions[i]
		if c.Type != appsv1.DeploymentProgressing || c.Reason == deploymentAvailable {
			continue
		}
		kept := appsv1.DeploymentCondition{Type: c.Type, LastUpdateTime: c.LastUpdateTime}
		if c.Reason == deploymentExceeded {
			kept.Reason = deploymentExceeded
		}
		return []appsv1.DeploymentCondition{kept}
	}
	return nil
}

// boundField returns the part of a Rollout field that the cache keeps, or nil to drop the field.
// Strings are shortened, and lists are dropped. The only map among the kept fields is the selector;
// if it exceeds the limits, it is replaced with an empty selector.
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

// sizeOf returns the total length, in bytes, of the strings in a JSON value, and the number of the
// value's elements.
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
