// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dns answers queries about names in a cluster's DNS domain, as the cluster's DNS server
// does for pods.
package dns

import (
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Domain is the cluster's DNS domain.
const Domain = "cluster.local"

// Find returns the IPv4 addresses of a name in the cluster's domain, and reports whether the name
// exists. The name is in lower case and has no final dot.
type Find func(name string) (addresses []netip.Addr, exists bool)

// Serve answers the queries that arrive at a socket, until the socket is closed.
func Serve(socket net.PacketConn, find Find) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := socket.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := answer(buffer[:n], find); reply != nil {
			_, _ = socket.WriteTo(reply, from)
		}
	}
}

// ttl is the number of seconds for which a client may keep an answer.
const ttl = 5

// answer returns the response to a DNS query, or nil if the query is malformed. Names outside the
// cluster's domain do not exist: resolvers that try a short name in several domains take any other
// answer about the last of them for a failure of the server.
func answer(question []byte, find Find) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(question)
	if err != nil || header.Response {
		return nil
	}
	q, err := parser.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired},
		Questions: []dnsmessage.Question{q},
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	var addresses []netip.Addr
	exists := false
	if strings.HasSuffix("."+name, "."+Domain) {
		addresses, exists = find(name)
	}
	if !exists {
		reply.RCode = dnsmessage.RCodeNameError
	}
	if q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET {
		for _, address := range addresses {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: ttl},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
