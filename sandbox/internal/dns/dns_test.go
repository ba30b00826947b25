// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func ask(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	question := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// service is the address of the only name that onlyService finds.
var service = netip.MustParseAddr("10.96.0.1")

func onlyService(name string) ([]netip.Addr, bool) {
	if name == "kubernetes.default.svc."+Domain {
		return []netip.Addr{service}, true
	}
	return nil, false
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    dnsmessage.Type
		code    dnsmessage.RCode
		answers int
	}{
		{"kubernetes.default.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"Kubernetes.Default.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"kubernetes.default.svc.cluster.local.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, 0},
		{"kubernetes.default.svc.default.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"notcluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
	} {
		var reply dnsmessage.Message
		if err := reply.Unpack(answer(ask(t, c.name, c.kind), onlyService)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if reply.ID != 7 || !reply.Response || reply.RCode != c.code || len(reply.Answers) != c.answers {
			t.Errorf("%s %s: got %v", c.name, c.kind, reply.GoString())
		}
		if c.answers > 0 && reply.Answers[0].Body.(*dnsmessage.AResource).A != service.As4() {
			t.Errorf("%s: got %v", c.name, reply.Answers)
		}
	}
}

// FuzzAnswer checks that no packet from a pod makes answer panic, and that it responds only to
// valid queries.
func FuzzAnswer(f *testing.F) {
	f.Add(ask(f, "kubernetes.default.svc.cluster.local.", dnsmessage.TypeA))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, packet []byte) {
		reply := answer(packet, onlyService)
		if reply == nil {
			return
		}
		if got := answer(reply, onlyService); got != nil {
			t.Error("an answer was answered")
		}
	})
}
