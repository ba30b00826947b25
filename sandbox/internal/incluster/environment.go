// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// elsewhere are variables of the user that would lead the program to another API server.
var elsewhere = []string{"KUBECONFIG", "KUBERNETES_MASTER"}

// command returns the command that starts the program, with the arguments of the
// container unless the user gave some, and with the environment that it has in a
// cluster.
func (r *run) command(ctx context.Context, pod *corev1.Pod) (*exec.Cmd, error) {
	main := container(pod)
	variables, err := r.containerVariables(ctx, pod, main)
	if err != nil {
		return nil, err
	}
	host, port, err := r.apiServer()
	if err != nil {
		return nil, err
	}
	args := r.Program[1:]
	if len(args) == 0 {
		for _, arg := range containerArgs(main) {
			args = append(args, expansion.Expand(arg, expansion.MappingFuncFor(variables)))
		}
	}
	cmd := exec.Command(r.Program[0], args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Of two variables of one name, the last one counts.
	cmd.Env = slices.Concat(
		slices.DeleteFunc(os.Environ(), leadsElsewhere),
		[]string{"HOSTNAME=" + pod.Name},
		assignments(variables),
		serviceVariables(host, port),
		r.Environment,
	)
	return cmd, nil
}

// serviceVariables are those by which a program finds the API server.
func serviceVariables(host, port string) []string {
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "KUBERNETES_SERVICE_PORT_HTTPS=" + port}
}

// containerArgs returns what the container starts its program with. The first word of
// its command is the program itself.
func containerArgs(c *corev1.Container) []string {
	if len(c.Command) == 0 {
		return c.Args
	}
	return slices.Concat(c.Command[1:], c.Args)
}

func leadsElsewhere(assignment string) bool {
	name, _, _ := strings.Cut(assignment, "=")
	return slices.Contains(elsewhere, name)
}

func assignments(variables map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, name+"="+variables[name])
	}
	return list
}

// containerVariables returns the environment variables that the container declares, as a
// kubelet does: those of whole ConfigMaps and Secrets first, and each can refer to the
// ones before it.
func (r *run) containerVariables(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (map[string]string, error) {
	variables := map[string]string{}
	for _, source := range c.EnvFrom {
		data, err := r.allKeys(ctx, pod.Namespace, source)
		if err != nil {
			return nil, fmt.Errorf("envFrom of the container %s: %w", c.Name, err)
		}
		for key, value := range data {
			variables[source.Prefix+key] = value
		}
	}
	for _, v := range c.Env {
		value, found := expansion.Expand(v.Value, expansion.MappingFuncFor(variables)), true
		if v.ValueFrom != nil {
			var err error
			if value, found, err = r.valueFrom(ctx, pod, c, v.ValueFrom); err != nil {
				return nil, fmt.Errorf("env %s of the container %s: %w", v.Name, c.Name, err)
			}
		}
		if found {
			variables[v.Name] = value
		}
	}
	return variables, nil
}

func (r *run) allKeys(ctx context.Context, namespace string, source corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case source.ConfigMapRef != nil:
		return r.configMap(ctx, namespace, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
	case source.SecretRef != nil:
		return r.secret(ctx, namespace, source.SecretRef.Name, source.SecretRef.Optional)
	}
	return nil, nil
}

// valueFrom returns what a variable refers to, and whether it is there. It is an error
// if something is missing that is not optional.
func (r *run) valueFrom(ctx context.Context, pod *corev1.Pod, c *corev1.Container, from *corev1.EnvVarSource) (string, bool, error) {
	var data map[string]string
	var key, kind string
	var optional *bool
	var err error
	switch {
	case from.FieldRef != nil:
		value, err := field(pod, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err := resource.ExtractContainerResourceValue(from.ResourceFieldRef, c)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		key, optional, kind = ref.Key, ref.Optional, "ConfigMap "+ref.Name
		data, err = r.configMap(ctx, pod.Namespace, ref.Name, optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		key, optional, kind = ref.Key, ref.Optional, "Secret "+ref.Name
		data, err = r.secret(ctx, pod.Namespace, ref.Name, optional)
	default:
		err = fmt.Errorf("this kind of source is not supported: give its value as 'value'")
	}
	value, found := data[key]
	if err == nil && !found && !isTrue(optional) {
		err = fmt.Errorf("the %s in the namespace %s has no key %s", kind, pod.Namespace, key)
	}
	return value, found, err
}

// field returns a field of the Pod. Those of its spec and status are not known to the
// library, as they are not in the object before the Pod runs.
func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

func (r *run) configMap(ctx context.Context, namespace, name string, optional *bool) (map[string]string, error) {
	object, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "ConfigMap", namespace, name, optional)
	}
	return object.Data, nil
}

func (r *run) secret(ctx context.Context, namespace, name string, optional *bool) (map[string]string, error) {
	object, err := r.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "Secret", namespace, name, optional)
	}
	data := map[string]string{}
	for key, value := range object.Data {
		data[key] = string(value)
	}
	return data, nil
}

// missing explains why an object cannot be read, unless it may be missing.
func missing(err error, kind, namespace, name string, optional *bool) error {
	switch {
	case apierrors.IsNotFound(err) && isTrue(optional):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s %s in the namespace %s: apply it first", kind, name, namespace)
	}
	return err
}

func isTrue(b *bool) bool { return b != nil && *b }
