// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"maps"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSettings checks that settings published by the holder of a lease are read back, and that
// labels published by another manager are ignored.
func TestSettings(t *testing.T) {
	const holder = "tidekeeper-5d8_0b6f3c1e-9a51-4a3a-8b5e-6b6b1d1f6a01"
	published := map[string]string{"max-concurrent-restarts": "2", "restart-slot-age": "10m0s"}
	labels := Labels(holder, map[string]string{"max-concurrent-restarts": "2", "restart-slot-age": "10m0s", "restart-queries": "/etc/queries.yaml"})
	labels["team"] = "platform"
	without := maps.Clone(labels)
	delete(without, publisherLabel)
	for _, tc := range []struct {
		name   string
		holder *string
		labels map[string]string
		want   map[string]string
	}{
		{"those of the holder", new(holder), labels, published},
		{"those of a manager before it, on the same host", new("tidekeeper-5d8_c2b1a7de-3f5b-4b59-9c8a-0d7a6d1e2f02"), labels, nil},
		{"of whom they are is not known", new(holder), without, nil},
		{"no one knows who, and the holder has no name", new(""), without, nil},
		{"it was released", new(""), labels, nil},
		{"it was never held", nil, labels, nil},
	} {
		got := Settings(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}, Spec: coordinationv1.LeaseSpec{HolderIdentity: tc.holder}})
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}
