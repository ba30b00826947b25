// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"maps"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a manager publishes is what is read from its lease, whatever other labels that has.
func TestSettings(t *testing.T) {
	published := map[string]string{"max-concurrent-restarts": "2", "restart-slot-age": "10m0s"}
	labels := Labels(map[string]string{"max-concurrent-restarts": "2", "restart-slot-age": "10m0s", "restart-queries": "/etc/queries.yaml"})
	labels["team"] = "platform"
	got := Settings(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
	if !maps.Equal(got, published) {
		t.Errorf("got %v, want %v", got, published)
	}
}
