// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// clusterDomain is the cluster's DNS domain.
const clusterDomain = "cluster.local"

// serveDNS starts to answer DNS queries at the given address. The parameter "service" is the
// cluster IP of the API server. If no DNS server were configured, the kubelet would warn about
// every pod.
func serveDNS(ctx context.Context, address netip.Addr, service netip.Addr) error {
	socket, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", netip.AddrPortFrom(address, 53).String())
	if err != nil {
		return err
	}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply := answer(buffer[:n], service); reply != nil {
				_, _ = socket.WriteTo(reply, from)
			}
		}
	}()
	return nil
}

// answer returns the response to a DNS query, or nil if the query is malformed. Only the name of
// the API server's Service has an address. Other names in the cluster domain do not exist, and
// queries for all other names are refused.
func answer(question []byte, service netip.Addr) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(question)
	if err != nil || header.Response {
		return nil
	}
	q, err := parser.Question()
	if err != nil {
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired},
		Questions: []dnsmessage.Question{q},
	}
	switch {
	case name == "kubernetes.default.svc."+clusterDomain:
		if q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET {
			reply.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 30},
				Body:   &dnsmessage.AResource{A: service.As4()},
			}}
		}
	case strings.HasSuffix("."+name, "."+clusterDomain):
		reply.RCode = dnsmessage.RCodeNameError
	default:
		reply.Authoritative = false
		reply.RCode = dnsmessage.RCodeRefused
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
