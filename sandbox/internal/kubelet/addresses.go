// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// firstPodIP is the lowest IP address of simulated pods. Nothing listens on the addresses of
// simulated pods.
var firstPodIP = netip.MustParseAddr("10.128.0.1")

// addresses assigns a unique IP address to each pod.
type addresses struct {
	mu    sync.Mutex
	next  netip.Addr
	inUse map[string]types.UID
	ofPod map[types.UID]string
}

func newAddresses() *addresses {
	return &addresses{next: firstPodIP, inUse: map[string]types.UID{}, ofPod: map[types.UID]string{}}
}

// of returns the IP address of a pod. The first call for a pod assigns an address.
func (a *addresses) of(pod types.UID) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.ofPod[pod]; ok {
		return ip
	}
	for ; ; a.next = a.next.Next() {
		if _, taken := a.inUse[a.next.String()]; !taken {
			ip := a.next.String()
			a.inUse[ip], a.ofPod[pod] = pod, ip
			return ip
		}
	}
}

// keep reserves the IP address that a pod already has in its status, for instance from an earlier
// run. It does nothing if the address is empty.
func (a *addresses) keep(pod types.UID, ip string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip != "" {
		a.inUse[ip], a.ofPod[pod] = pod, ip
	}
}

// release frees the IP address of a deleted pod.
func (a *addresses) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.inUse, a.ofPod[pod])
	delete(a.ofPod, pod)
}
