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

// restartTemplate restarts a workload with the annotation of its pod template that kubectl
// rollout restart writes.
func restartTemplate(at time.Time) map[string]any {
	return map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{tidekeeperv1.RestartedAtAnnotation: FormatTime(at)},
	}}}}
}

// FormatTime returns a time in the format that restarts write into workloads.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// restartedAt returns the time of the last restart of a pod template.
func restartedAt(template *corev1.PodTemplateSpec) string {
	return template.Annotations[tidekeeperv1.RestartedAtAnnotation]
}

// longestTime is the maximum length that is kept of the time of a restart, in bytes. Every
// valid time is shorter.
const longestTime = 4096

// TrimTemplate drops everything from a pod template except the time of its last restart.
func TrimTemplate(template *corev1.PodTemplateSpec) {
	at, ok := template.Annotations[tidekeeperv1.RestartedAtAnnotation]
	*template = corev1.PodTemplateSpec{}
	if ok {
		// The copy lets the memory of the whole template be freed.
		template.Annotations = map[string]string{
			tidekeeperv1.RestartedAtAnnotation: strings.Clone(at[:min(len(at), longestTime)]),
		}
	}
}
