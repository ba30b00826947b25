// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

func TestForm(t *testing.T) {
	for _, tc := range []struct {
		query, requests, command, mistake string
	}{
		{"", "1 CPU, 2Gi memory", "pools fit --cpu 1 --memory 2Gi", ""},
		{"cpu=500m&memory=", "0.5 CPU", "pools fit --cpu 500m", ""},
		{"cpu=&gpu=2&request=ephemeral-storage%3D10Gi", "10Gi ephemeral-storage, 2 nvidia.com/gpu", "pools fit --gpu 2 --request ephemeral-storage=10Gi", ""},
		{"cpu=&memory=1e5", "97.7Ki memory", "pools fit --memory 1e5", ""},
		{"cpu=&memory=", "nothing", "pools fit", "write an amount that a copy requests, or a workload"},
		{"cpu=x", "nothing", "pools fit --cpu x", "CPU: write an amount such as 500m"},
		{"cpu=-1", "nothing", "pools fit --cpu -1", "CPU: write an amount such as 500m"},
		{"memory=1e2000000000", "nothing", "pools fit --memory 1e2000000000", "Memory: write an amount such as 2Gi"},
		{"request=10Gi", "nothing", "pools fit --request 10Gi", "Other: write RESOURCE=AMOUNT, such as ephemeral-storage=10Gi"},
		{"cpu=1&request=cpu%3D2", "nothing", "pools fit --cpu 1 --request cpu=2", "Other: cpu is requested already"},
	} {
		query, err := url.ParseQuery(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		var d whatIf
		requests, command, mistake := d.read(query)
		said := ""
		if mistake != nil {
			said = mistake.Error()
		}
		if diff := cmp.Diff([]string{tc.requests, tc.command, tc.mistake}, []string{resources.TextOfRequests(requests), strings.Join(command, " "), said}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.query, diff)
		}
	}
}

// FuzzForm checks that arbitrary strings in the form or in the Host header are parsed quickly and
// are not accepted if they are invalid.
func FuzzForm(f *testing.F) {
	f.Add("1", "ephemeral-storage=1Gi", "127.0.0.1:80")
	f.Add("1e999", "=", "[::1]:x")
	f.Fuzz(func(t *testing.T, amount, other, host string) {
		var d whatIf
		requests, _, err := d.read(url.Values{"cpu": {amount}, "request": {other}})
		for name, q := range requests {
			if err == nil && q.Sign() < 0 {
				t.Errorf("%s is %s", name, q.String())
			}
		}
		if !isOurHost(host) {
			return
		}
		name := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
		if left, _, err := net.SplitHostPort(host); err == nil {
			name = left
		}
		if name != "localhost" && !net.ParseIP(name).IsLoopback() {
			t.Errorf("%q is taken for this machine", host)
		}
	})
}
