// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// elsewhere lists environment variables that could direct the program to another API server. The
// program does not inherit them from the user's environment.
var elsewhere = []string{"KUBECONFIG", "KUBERNETES_MASTER"}

// command returns the command that runs the program as the container of its Pod, with the
// environment variables that a container in a cluster would have. If the user has passed no
// arguments, the program gets the container's arguments.
func (o Options) command(pod *corev1.Pod, declared map[string]string) (*exec.Cmd, error) {
	host, port, err := splitServer(o.Config.Host)
	if err != nil {
		return nil, err
	}
	args := o.Program[1:]
	if len(args) == 0 {
		for _, arg := range containerArgs(container(pod)) {
			args = append(args, expansion.Expand(arg, expansion.MappingFuncFor(declared)))
		}
	}
	cmd := exec.Command(o.Program[0], args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// If a variable is set more than once, the last value takes effect.
	cmd.Env = slices.Concat(
		slices.DeleteFunc(os.Environ(), leadsElsewhere),
		[]string{"HOSTNAME=" + pod.Name},
		assignments(declared),
		serviceVariables(host, port),
		o.Environment,
	)
	return cmd, nil
}

// splitServer returns the host and the port in the API server's URL.
func splitServer(server string) (host, port string, err error) {
	address, err := url.Parse(server)
	if err != nil {
		return "", "", err
	}
	return net.SplitHostPort(address.Host)
}

// serviceVariables returns the environment variables with which a program in a pod finds the API
// server.
func serviceVariables(host, port string) []string {
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "KUBERNETES_SERVICE_PORT_HTTPS=" + port}
}

// containerArgs returns the arguments for the program: a container's command without its first
// word, which is the program itself, and the container's arguments.
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

// variables evaluates the environment variables that a Pod's containers declare, as a kubelet does.
type variables struct {
	client kubernetes.Interface
	pod    *corev1.Pod
}

// of returns the environment variables that a container declares. Variables from entire ConfigMaps
// and Secrets come first. An individual variable overrides them, and can refer to earlier
// variables.
func (v variables) of(ctx context.Context, c *corev1.Container) (map[string]string, error) {
	values := map[string]string{}
	for _, source := range c.EnvFrom {
		data, err := v.allKeys(ctx, source)
		if err != nil {
			return nil, fmt.Errorf("envFrom of the container %s: %w", c.Name, err)
		}
		for key, value := range data {
			values[source.Prefix+key] = value
		}
	}
	for _, declared := range c.Env {
		value, found := expansion.Expand(declared.Value, expansion.MappingFuncFor(values)), true
		if declared.ValueFrom != nil {
			var err error
			if value, found, err = v.valueFrom(ctx, c, declared.ValueFrom); err != nil {
				return nil, fmt.Errorf("env %s of the container %s: %w", declared.Name, c.Name, err)
			}
		}
		if found {
			values[declared.Name] = value
		}
	}
	return values, nil
}

func (v variables) allKeys(ctx context.Context, source corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case source.ConfigMapRef != nil:
		return v.configMap(ctx, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
	case source.SecretRef != nil:
		return v.secret(ctx, source.SecretRef.Name, source.SecretRef.Optional)
	}
	return nil, nil
}

// valueFrom returns the value that an environment variable refers to, and reports whether that
// value exists. It returns an error if the value is missing and the reference is not optional.
func (v variables) valueFrom(ctx context.Context, c *corev1.Container, from *corev1.EnvVarSource) (string, bool, error) {
	var data map[string]string
	var key, kind string
	var optional *bool
	var err error
	switch {
	case from.FieldRef != nil:
		value, err := field(v.pod, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err := resource.ExtractContainerResourceValue(from.ResourceFieldRef, c)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		key, optional, kind = ref.Key, ref.Optional, "ConfigMap "+ref.Name
		data, err = v.configMap(ctx, ref.Name, optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		key, optional, kind = ref.Key, ref.Optional, "Secret "+ref.Name
		data, err = v.secret(ctx, ref.Name, optional)
	default:
		err = fmt.Errorf("this kind of source is not supported: give its value as 'value'")
	}
	value, found := data[key]
	if err == nil && !found && !isTrue(optional) {
		err = fmt.Errorf("the %s in the namespace %s has no key %s", kind, v.pod.Namespace, key)
	}
	return value, found, err
}

// field returns a field of the Pod for the downward API. It handles some fields of spec and status
// itself, because package fieldpath does not support them.
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

func (v variables) configMap(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := v.client.CoreV1().ConfigMaps(v.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "ConfigMap", v.pod.Namespace, name, optional)
	}
	return object.Data, nil
}

func (v variables) secret(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := v.client.CoreV1().Secrets(v.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "Secret", v.pod.Namespace, name, optional)
	}
	data := map[string]string{}
	for key, value := range object.Data {
		data[key] = string(value)
	}
	return data, nil
}

// missing returns the error to report for a ConfigMap or Secret that could not be read, or nil if
// the object does not exist and is optional.
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
