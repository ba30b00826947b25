// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// pod returns the pod to copy, as the flags describe it. lacks explains which defaults the API
// server did not set on the pod; "" if it set all.
func (o *fitOptions) pod(ctx context.Context, c client.Client) (pod *corev1.Pod, lacks string, err error) {
	if len(o.requests) > 0 {
		pod = view.PodOf(o.requests)
		pod.Spec.PriorityClassName = o.priorityClass
		return pod, "", nil
	}
	namespace, err := o.Kubeconfig.Namespace(false)
	if err != nil {
		return nil, "", err
	}
	object, err := o.object(ctx, c, namespace)
	if err != nil {
		return nil, "", err
	}
	return copyOf(ctx, c, object, namespace, o.priorityClass)
}

// notAdmitted is listed among the constraints that were not evaluated, if the user is not allowed
// to create the pod in a dry run.
const notAdmitted = "admission by the API server"

// addNotAdmitted adds notAdmitted to the reasons why the fits are upper bounds.
func addNotAdmitted(fits []view.PoolFit) {
	for i := range fits {
		fits[i].AtMost = append(slices.Clone(fits[i].AtMost), notAdmitted)
		if fits[i].NewNode != nil {
			fits[i].NewNode.AtMost = append(slices.Clone(fits[i].NewNode.AtMost), notAdmitted)
		}
		if p := fits[i].Preemption; p != nil && !slices.Contains(p.Uncertain, notAdmitted) {
			p.Uncertain = append(p.Uncertain, notAdmitted)
		}
	}
}

// PodLike returns a pod like the pods of the workload that `like` names as TYPE/NAME, or a copy of
// the pod that `like` names. lacks explains which defaults the API server did not set on the pod;
// "" if it set all.
func PodLike(ctx context.Context, c client.Client, namespace, like string) (pod *corev1.Pod, lacks string, err error) {
	object, err := readLike(ctx, c, namespace, like)
	if err != nil {
		return nil, "", err
	}
	return copyOf(ctx, c, object, namespace, "")
}

// copyOf returns a pod like the pods that a workload creates, or a copy of a pod. If the object has
// no namespace, the given namespace is used. priorityClass replaces the PriorityClass of the pod,
// unless it is empty. lacks explains which defaults the API server did not set on the pod; "" if it
// set all.
func copyOf(ctx context.Context, c client.Client, object *unstructured.Unstructured, namespace, priorityClass string) (pod *corev1.Pod, lacks string, err error) {
	if pod, err = podOf(object); err != nil {
		return nil, "", err
	}
	if object.GetNamespace() != "" {
		namespace = object.GetNamespace()
	}
	pod.ObjectMeta = metav1.ObjectMeta{GenerateName: "fit-", Namespace: namespace, Labels: pod.Labels, Annotations: pod.Annotations}
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
	if priorityClass != "" {
		pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = priorityClass, nil, nil
	}
	pod.Spec.EphemeralContainers = nil // Ephemeral containers have no requests, and the API server rejects them in new pods.
	if pod, lacks, err = complete(ctx, c, pod); err == nil {
		setClaimTemplates(pod, object)
	}
	return pod, lacks, err
}

// object returns the object that --like or -f selects.
func (o *fitOptions) object(ctx context.Context, c client.Client, namespace string) (*unstructured.Unstructured, error) {
	if o.like == "" {
		var found []*unstructured.Unstructured
		err := cmdutil.ReadManifests(o.In, o.files.ToOptions(), func(object *unstructured.Unstructured, _ string) { found = append(found, object) })
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("-f has %d objects: write one Pod or workload", len(found))
		}
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
	return readLike(ctx, c, namespace, o.like)
}

// readLike reads the workload or pod that `like` names as TYPE/NAME.
func readLike(ctx context.Context, c client.Client, namespace, like string) (*unstructured.Unstructured, error) {
	kind, name, err := likeKind("--like", like)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		err = &cmdutil.CodedError{Code: cmdutil.ExitKindUnknown, Err: fmt.Errorf("the cluster does not know the kind %s of %s", kind.Kind, kind.GroupVersion())}
	case apierrors.IsNotFound(err):
		err = cmdutil.NotFound(kind.Kind, namespace, name)
	}
	return object, err
}

// likeKind parses the value of a flag that names a workload or pod in the form TYPE/NAME.
func likeKind(flag, text string) (kind schema.GroupVersionKind, name string, err error) {
	resource, name, _ := strings.Cut(text, "/")
	if name != "" {
		switch strings.ToLower(resource) {
		case "pod", "pods", "po":
			return corev1.SchemeGroupVersion.WithKind("Pod"), name, nil
		}
		if k := workload.Named(resource); k != nil {
			return k.GroupVersionKind, name, nil
		}
	}
	return kind, "", fmt.Errorf("%s %s: write TYPE/NAME of a workload or a pod, such as deployment/web", flag, text)
}

// podOf converts a manifest to a pod: either the pod itself, or a pod from the pod template of a
// workload.
func podOf(object *unstructured.Unstructured) (*corev1.Pod, error) {
	source := object.Object
	if object.GetKind() != "Pod" {
		template, found, err := unstructured.NestedMap(object.Object, "spec", "template")
		if err != nil || !found {
			return nil, fmt.Errorf("%s %q has no pod template", object.GetKind(), object.GetName())
		}
		source = template
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(source, pod); err != nil {
		return nil, fmt.Errorf("the pod of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	if len(pod.Spec.Containers) == 0 {
		return nil, errors.New("the pod has no containers")
	}
	addVolumeClaims(pod, object)
	return pod, nil
}

// addVolumeClaims adds a volume to the pod for each volumeClaimTemplate of a StatefulSet.
func addVolumeClaims(pod *corev1.Pod, object *unstructured.Unstructured) {
	claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	for _, claim := range claims {
		fields, _ := claim.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "metadata", "name")
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// setClaimTemplates turns the volumes of a StatefulSet's volumeClaimTemplates into ephemeral volumes
// with these templates, because each pod of a StatefulSet has claims of its own. The name of each
// template is the name of its claims without the ordinal.
func setClaimTemplates(pod *corev1.Pod, object *unstructured.Unstructured) {
	claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	for _, claim := range claims {
		template := &corev1.PersistentVolumeClaimTemplate{}
		fields, _ := claim.(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template); err != nil {
			continue
		}
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.Name == template.Name && v.PersistentVolumeClaim != nil {
				template.Name += "-" + object.GetName() + "-"
				v.VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}
			}
		}
	}
}

// complete returns the pod with the fields that the API server would set: scheduling constraints
// and overhead from the RuntimeClass, and defaults from LimitRanges. It sends a dry-run create
// request.
func complete(ctx context.Context, c client.Client, pod *corev1.Pod) (completed *corev1.Pod, lacks string, err error) {
	created := pod.DeepCopy()
	err = c.Create(ctx, created, client.DryRunAll)
	switch {
	case apierrors.IsForbidden(err):
		return pod, "the pod is evaluated as written, without the defaults of its RuntimeClass and LimitRanges: " + err.Error(), nil
	case apierrors.IsNotFound(err):
		return nil, "", cmdutil.NotFound("Namespace", "", pod.Namespace)
	case apierrors.IsInvalid(err):
		return nil, "", fmt.Errorf("the API server would reject the pod: %w", err)
	case err != nil:
		return nil, "", err
	}
	created.Spec.NodeName = ""
	return created, "", nil
}
