// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestClosedByQuery checks that a restart that currently waits for a Prometheus query is forecast
// to start, since future answers are unknown, and that such restarts are counted.
func TestClosedByQuery(t *testing.T) {
	closed := func(r *tidekeeperv1.ScheduledRestart) {
		r.Status.Conditions = []metav1.Condition{{
			Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: tidekeeperv1.ReasonClosedByQuery, Message: "closed by query alerts: Down",
		}}
	}
	for namespace, want := range map[string]int{"": 2, "shop": 1} {
		f := play(t, func(in *Input) {
			in.Restarts = []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "web", requestedAt("02:58:40"), closed), nightly("elsewhere", "web", closed), nightly("shop", "api"),
			}
			in.Namespace, in.Until = namespace, at("02:59:30")
		})
		if f.ClosedByQuery != want {
			t.Errorf("namespace %q: %d wait for a query, want %d", namespace, f.ClosedByQuery, want)
		}
		if diff := cmp.Diff([]string{"shop/web 02:59:00 to - in progress"}, lines(f)); diff != "" {
			t.Errorf("namespace %q (-want +got):\n%s", namespace, diff)
		}
	}
}
