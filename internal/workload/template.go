// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func apps(kind string) schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind(kind) }

// restartTemplate returns the merge patch that restarts a workload by changing its pod template. It
// sets the same annotation as kubectl rollout restart.
func restartTemplate(at time.Time) map[string]any {
	return map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{tidekeeperv1.RestartedAtAnnotation: FormatTime(at)},
	}}}}
}

// FormatTime formats a restart time as it is written to the restarted workload.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// restartedAt returns the time of the last restart from the pod template's annotation.
func restartedAt(template *corev1.PodTemplateSpec) string {
	return template.Annotations[tidekeeperv1.RestartedAtAnnotation]
}

// longestTime is the length, in bytes, to which the cache truncates the time of a restart. Every
// valid time is shorter.
const longestTime = 4096

// TrimTemplate drops everything from a pod template except the annotation with the time of its last
// restart.
func TrimTemplate(template *corev1.PodTemplateSpec) {
	at, ok := template.Annotations[tidekeeperv1.RestartedAtAnnotation]
	*template = corev1.PodTemplateSpec{}
	if ok {
		// strings.Clone allows the rest of the template to be garbage-collected.
		template.Annotations = map[string]string{
			tidekeeperv1.RestartedAtAnnotation: strings.Clone(at[:min(len(at), longestTime)]),
		}
	}
}
