// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// Programs describes how to find local processes that 'sandbox run' runs as pods.
type Programs struct {
	// Annotation is the key of the annotation that marks the pods of such programs.
	Annotation string
	// Socket is the path of the Unix socket that leads to a program in its own network namespace.
	// The socket accepts HTTP CONNECT, and exists only while such a program runs.
	Socket string
}

// programs finds the local processes that 'sandbox run' runs as pods, by the addresses of their
// Pods and Services.
type programs struct {
	Programs
	client kubernetes.Interface
}

// address returns the local address on which a program listens, given the address of its Pod or
// Service and the port.
func (p *programs) address(ctx context.Context, host, port string) (string, error) {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return "", fmt.Errorf("port %q: %w", port, err)
	}
	cached := metav1.ListOptions{ResourceVersion: "0"}
	services, err := p.client.CoreV1().Services("").List(ctx, cached)
	if err != nil {
		return "", fmt.Errorf("list services: %w", err)
	}
	pods, err := p.client.CoreV1().Pods("").List(ctx, cached)
	if err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	var service *corev1.Service
	for i := range services.Items {
		if services.Items[i].Spec.ClusterIP == host {
			service = &services.Items[i]
		}
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Annotations[p.Annotation] == "" {
			continue
		}
		target := int32(number)
		if service != nil {
			if target = targetOf(service, pod, int32(number)); target == 0 {
				continue
			}
		} else if pod.Status.PodIP != host {
			continue
		}
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(target))), nil
	}
	return "", fmt.Errorf("no program that 'sandbox run' runs is behind %s", net.JoinHostPort(host, port))
}

// targetOf returns the target port in a Pod for a Service port. It returns 0 if the Service does
// not select the Pod, or has no such port.
func targetOf(s *corev1.Service, pod *corev1.Pod, port int32) int32 {
	if s.Namespace != pod.Namespace || len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
		return 0
	}
	for _, p := range s.Spec.Ports {
		switch {
		case p.Port != port:
		case p.TargetPort.Type == intstr.Int:
			return p.TargetPort.IntVal
		default:
			return portNamed(pod, p.TargetPort.StrVal)
		}
	}
	return 0
}

func portNamed(pod *corev1.Pod, name string) int32 {
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.Name == name {
				return p.ContainerPort
			}
		}
	}
	return 0
}
