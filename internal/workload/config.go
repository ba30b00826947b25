// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// config returns the ConfigMaps and Secrets that the pods of a template use, in the form of
// [podconfig.Encode]. A template without containers, which no API server has, was trimmed
// before: its name then holds that text. The name of a template is otherwise unused.
func config(template *corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return template.Name
	}
	return podconfig.Encode(&template.Spec)
}

// trimTemplate is [TrimTemplate], but keeps the used ConfigMaps and Secrets in the name.
func trimTemplate(template *corev1.PodTemplateSpec) {
	used := config(template)
	TrimTemplate(template)
	template.Name = used
}

// rolloutConfig is like config for a Rollout. An invalid pod template, and a template in
// another object, count as using nothing.
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

// keepConfig stores the used ConfigMaps and Secrets of a Rollout in its trimmed spec.
func keepConfig(used string, spec any) {
	if fields, ok := spec.(map[string]any); ok && used != "" {
		fields["template"] = map[string]any{"metadata": map[string]any{"name": used}}
	}
}
