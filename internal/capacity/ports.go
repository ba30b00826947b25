// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hostPort is a port of a node that a pod uses.
type hostPort struct {
	ip       string
	protocol corev1.Protocol
	port     int32
}

const everyIP = "0.0.0.0"

// hostPortsOf returns the host ports of a pod's containers and sidecars. With hostNetwork, every
// container port is a host port, even before the API server has defaulted hostPort.
func hostPortsOf(spec *corev1.PodSpec) (ports []hostPort) {
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			number := p.HostPort
			if number == 0 && spec.HostNetwork {
				number = p.ContainerPort
			}
			if number > 0 {
				ports = append(ports, hostPort{cmp.Or(p.HostIP, everyIP), cmp.Or(p.Protocol, corev1.ProtocolTCP), number})
			}
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	return ports
}

// conflict reports whether two pods with the given host ports cannot run on the same node.
func conflict(a, b []hostPort) bool {
	return slices.ContainsFunc(a, func(x hostPort) bool {
		return slices.ContainsFunc(b, func(y hostPort) bool {
			return x.port == y.port && x.protocol == y.protocol && (x.ip == y.ip || x.ip == everyIP || y.ip == everyIP)
		})
	})
}
