// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"net"
	"net/netip"

	"tidekeeper.dev/tidekeeper/sandbox/internal/dns"
)

// serveDNS starts to answer DNS queries at the given address. The only name is that of the API
// server's Service, whose cluster IP is "service". If no DNS server were configured, the kubelet
// would warn about every pod.
func serveDNS(ctx context.Context, address, service netip.Addr) error {
	socket, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", netip.AddrPortFrom(address, 53).String())
	if err != nil {
		return err
	}
	go dns.Serve(socket, func(name string) ([]netip.Addr, bool) {
		if name == "kubernetes.default.svc."+dns.Domain {
			return []netip.Addr{service}, true
		}
		return nil, false
	})
	return nil
}
