// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/lease"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// TestSettings checks that published settings are used, and that missing and invalid settings get
// their defaults and are listed as assumed.
func TestSettings(t *testing.T) {
	const none = "--max-concurrent-restarts 20, --restart-namespace-share 50, --restart-slot-age 10m"
	defaults := forecast.Limits{MaxConcurrent: 20, NamespaceShare: 50, SlotAge: 10 * time.Minute}
	for _, tc := range []struct {
		name      string
		published map[string]string
		want      forecast.Limits
		assumed   string
	}{
		{"nothing is known", nil, defaults, none},
		{"all", map[string]string{"max-concurrent-restarts": "2", "restart-namespace-share": "100", "restart-slot-age": "1h30m0s"}, forecast.Limits{MaxConcurrent: 2, NamespaceShare: 100, SlotAge: 90 * time.Minute}, ""},
		{"a manager that publishes less", map[string]string{"max-concurrent-restarts": "2"}, forecast.Limits{MaxConcurrent: 2, NamespaceShare: 50, SlotAge: 10 * time.Minute}, "--restart-namespace-share 50, --restart-slot-age 10m"},
		{"what no manager publishes", map[string]string{"max-concurrent-restarts": "0", "restart-namespace-share": "101", "restart-slot-age": "-1s"}, defaults, none},
	} {
		labels := lease.Labels("a", tc.published)
		held := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: noon}}}
		got := SettingsOf(ManagerOf([]coordinationv1.Lease{held}, noon).Published)
		if text := got.AssumedText(got.Assumed...); got.Limits != tc.want || text != tc.assumed {
			t.Errorf("%s: %+v, assumed %q; want %+v and %q", tc.name, got.Limits, text, tc.want, tc.assumed)
		}
	}
	s := SettingsOf(nil)
	if got := s.AssumedText(budget.FlagMaxConcurrent); got != "--max-concurrent-restarts 20" {
		t.Errorf("one of them: %q", got)
	}
}
