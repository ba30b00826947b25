// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/internal/podconfig"
)

// config returns what the pods of a template use of ConfigMaps and Secrets, as
// [podconfig.Encode] has it. That of a template without containers, which no API server has,
// is its name: it was trimmed before. The name of a template means nothing otherwise.
func config(template *corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return template.Name
	}
	return podconfig.Encode(&template.Spec)
}

// trimTemplate does what [TrimTemplate] does, and keeps what the pods use.
func trimTemplate(template *corev1.PodTemplateSpec) {
	used := config(template)
	TrimTemplate(template)
	template.Name = used
}

// rolloutConfig returns the same of a Rollout. What is in its template and is not a pod template, and
// a template that is in another object, counts as nothing.
func rolloutConfig(u *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template")
	template, _ := value.(map[string]any)
	spec, ok := template["spec"].(map[string]any)
	if !ok {
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		return name
	}
	pod := &corev1.PodSpec{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(spec, pod) != nil {
		return ""
	}
	return podconfig.Encode(pod)
}

// keepConfig puts what the pods of a Rollout use into its trimmed spec.
func keepConfig(used string, spec any) {
	if fields, ok := spec.(map[string]any); ok && used != "" {
		fields["template"] = map[string]any{"metadata": map[string]any{"name": used}}
	}
}
