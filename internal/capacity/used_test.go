// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestUsedBy(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	measured := func(node, cpu, memory string) Metrics {
		m := Metrics{Node: node, Time: noon.Add(-time.Minute), Usage: corev1.ResourceList{}}
		for name, amount := range map[corev1.ResourceName]string{"cpu": cpu, "memory": memory} {
			if amount != "" {
				m.Usage[name] = resource.MustParse(amount)
			}
		}
		return m
	}
	at := func(m Metrics, at time.Time) Metrics {
		m.Time = at
		return m
	}
	with := func(m Metrics, name corev1.ResourceName, amount string) Metrics {
		m.Usage[name] = resource.MustParse(amount)
		return m
	}
	a := measured("a", "1217465382n", "1Gi")
	for _, tc := range []struct {
		name    string
		metrics []Metrics
		want    string
	}{
		{"all nodes", []Metrics{a, measured("b", "2", "512Mi")}, `{"nodes":2,"measuredNodes":2,"resources":{"cpu":"3218m","memory":"1536Mi"}}`},
		{"nothing is used, which is measured too", []Metrics{measured("a", "0", "0"), measured("b", "0", "0")}, `{"nodes":2,"measuredNodes":2,"resources":{"cpu":"0","memory":"0"}}`},
		{"some nodes", []Metrics{a}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"a node that is not one of them", []Metrics{a, measured("c", "8", "8Gi")}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"other resources", []Metrics{with(a, "example.com/x", "1e90")}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"a negative amount", []Metrics{a, measured("b", "-2", "1Gi")}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"an amount that no node has", []Metrics{a, measured("b", "1", "1e30")}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"only one of the resources", []Metrics{a, measured("b", "1", "")}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"expired", []Metrics{a, at(measured("b", "1", "1Gi"), noon.Add(-MetricsExpire))}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"nearly expired", []Metrics{at(a, noon.Add(time.Second-MetricsExpire))}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"the clock of the cluster is ahead", []Metrics{at(a, noon.Add(time.Hour))}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"at a time that is not known", []Metrics{at(a, time.Time{})}, `{"nodes":2,"measuredNodes":1,"resources":{"cpu":"1218m","memory":"1Gi"}}`},
		{"no node", []Metrics{measured("b", "-1", "1Gi"), measured("c", "1", "1Gi")}, "null"},
		{"no metrics", nil, "null"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := json.Marshal(UsedBy([]string{"a", "b"}, tc.metrics, noon))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUsedByDoesNotOverflow checks that summing the maximum plausible usage of many nodes does not
// overflow.
func TestUsedByDoesNotOverflow(t *testing.T) {
	const nodes = 20_000 // 20,000 times 2^50 exceeds an int64
	var names []string
	var list []Metrics
	for i := range nodes {
		names = append(names, fmt.Sprint("node-", i))
		list = append(list, Metrics{Node: names[i], Usage: usedMost})
	}
	u := UsedBy(names, list, time.Time{})
	if u == nil || u.AtLeast() {
		t.Fatalf("%+v, want all nodes", u)
	}
	for name, most := range usedMost {
		want := most.DeepCopy()
		if want.Mul(nodes); want.Cmp(u.Resources[name]) != 0 {
			t.Errorf("%s: %v, want %v", name, u.Resources[name], want)
		}
	}
}
