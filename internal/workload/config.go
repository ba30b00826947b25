// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// config returns the ConfigMaps and Secrets that a pod template uses, in the encoding of
// [podconfig.Encode]. A template without containers, which the API server would reject, has been
// trimmed by trimTemplate. Its name, which is otherwise unused, then holds the encoded string.
func config(template *corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return template.Name
	}
	return podconfig.Encode(&template.Spec)
}

// trimTemplate is like [TrimTemplate], but stores the encoded ConfigMaps and Secrets that the
// template uses in the template's name.
func trimTemplate(template *corev1.PodTemplateSpec) {
	used := config(template)
	TrimTemplate(template)
	template.Name = used
}

// rolloutConfig is like the function config, but for a Rollout. It returns "" if the pod template
// is invalid, or if the Rollout uses the template of another object (spec.workloadRef).
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

// keepConfig stores the encoded ConfigMaps and Secrets that a Rollout uses in the Rollout's trimmed
// spec.
func keepConfig(used string, spec any) {
	if fields, ok := spec.(map[string]any); ok && used != "" {
		fields["template"] = map[string]any{"metadata": map[string]any{"name": used}}
	}
}
