// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/internal/dns"
)

// cluster holds the objects that names and addresses stand for: Services with their endpoints, and pods.
type cluster struct {
	services []corev1.Service
	slices   []discoveryv1.EndpointSlice
	pods     []corev1.Pod
}

// read reads the current objects. The cluster of a workload is small.
func read(ctx context.Context, client kubernetes.Interface) (*cluster, error) {
	services, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	endpoints, err := client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return &cluster{services: services.Items, slices: endpoints.Items, pods: pods.Items}, nil
}

// addresses returns the addresses of a name, and reports whether the name exists. Like the cluster's
// DNS server, it knows the names of Services (SERVICE.NAMESPACE.svc.cluster.local, with the cluster IP,
// or for headless Services the IPs of ready pods) and of pods with a host name behind a headless
// Service (POD.SERVICE.NAMESPACE.svc.cluster.local).
// A Service of the type ExternalName has the addresses of the name that it stands for, which must be
// one of these, too.
func (c *cluster) addresses(name string) ([]netip.Addr, bool) { return c.follow(name, mostAliases) }

// mostAliases is the maximum number of Services that stand for each other's names.
const mostAliases = 8

func (c *cluster) follow(name string, left int) ([]netip.Addr, bool) {
	name, is := strings.CutSuffix(name, ".svc."+dns.Domain)
	parts := strings.Split(name, ".")
	if !is || len(parts) < 2 || len(parts) > 3 {
		return nil, false
	}
	host := ""
	if len(parts) == 3 {
		host, parts = parts[0], parts[1:]
	}
	i := slices.IndexFunc(c.services, func(s corev1.Service) bool { return s.Name == parts[0] && s.Namespace == parts[1] })
	if i < 0 {
		return nil, false
	}
	service := &c.services[i]
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		if left == 0 || host != "" {
			return nil, false
		}
		return c.follow(strings.ToLower(strings.TrimSuffix(service.Spec.ExternalName, ".")), left-1)
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		if host != "" {
			return nil, false
		}
		return parse(service.Spec.ClusterIP), true
	}
	var found []netip.Addr
	for _, e := range c.endpoints(service) {
		if ready := isReady(&e, service.Spec.PublishNotReadyAddresses); !ready || host != "" && (e.Hostname == nil || *e.Hostname != host) {
			continue
		}
		for _, address := range e.Addresses {
			found = append(found, parse(address)...)
		}
	}
	return found, host == "" || len(found) > 0
}

// endpoints returns the endpoints of a Service, in the order of their pods' names.
func (c *cluster) endpoints(service *corev1.Service) []discoveryv1.Endpoint {
	var all []discoveryv1.Endpoint
	for i := range c.slices {
		if s := &c.slices[i]; s.Namespace == service.Namespace && s.Labels[discoveryv1.LabelServiceName] == service.Name {
			all = append(all, s.Endpoints...)
		}
	}
	slices.SortFunc(all, func(a, b discoveryv1.Endpoint) int { return strings.Compare(podName(&a), podName(&b)) })
	return all
}

func podName(e *discoveryv1.Endpoint) string {
	if e.TargetRef == nil {
		return ""
	}
	return e.TargetRef.Name
}

// isReady reports whether traffic is sent to an endpoint.
func isReady(e *discoveryv1.Endpoint, anyway bool) bool {
	return anyway || e.Conditions.Ready == nil || *e.Conditions.Ready
}

func parse(address string) []netip.Addr {
	parsed, err := netip.ParseAddr(address)
	if err != nil || !parsed.Is4() {
		return nil
	}
	return []netip.Addr{parsed}
}

// behind returns the pod and its port that a connection to an address and a port reaches, or nil if
// there is none: a running pod of this address, or the first ready pod of the Service.
func (c *cluster) behind(address string, port int) (*corev1.Pod, int) {
	for i := range c.services {
		s := &c.services[i]
		if s.Spec.ClusterIP != address {
			continue
		}
		for _, e := range c.endpoints(s) {
			if !isReady(&e, s.Spec.PublishNotReadyAddresses) {
				continue
			}
			pod := c.running(func(p *corev1.Pod) bool { return p.Namespace == s.Namespace && p.Name == podName(&e) })
			if target := targetOf(s, port, pod); target != 0 {
				return pod, target
			}
		}
		return nil, 0
	}
	return c.running(func(p *corev1.Pod) bool { return p.Status.PodIP == address && !p.Spec.HostNetwork }), port
}

func (c *cluster) running(is func(*corev1.Pod) bool) *corev1.Pod {
	for i := range c.pods {
		if p := &c.pods[i]; p.Status.Phase == corev1.PodRunning && is(p) {
			return p
		}
	}
	return nil
}

// targetOf returns the port of a pod to which a Service sends connections to its own port, or 0 if it
// has no such port, or the pod is nil.
func targetOf(s *corev1.Service, port int, pod *corev1.Pod) int {
	if pod == nil {
		return 0
	}
	for _, p := range s.Spec.Ports {
		if int(p.Port) != port {
			continue
		}
		if name := p.TargetPort.StrVal; name != "" {
			return named(pod, name)
		}
		if p.TargetPort.IntVal != 0 {
			return int(p.TargetPort.IntVal)
		}
		return port
	}
	return 0
}

// named returns the number of a pod's named port, or 0.
func named(pod *corev1.Pod, name string) int {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == name {
				return int(p.ContainerPort)
			}
		}
	}
	return 0
}
