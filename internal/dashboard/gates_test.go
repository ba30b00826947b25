// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestClosedGates checks that each restart in the list shows its closed gates, as the command
// restarts gates does, or that they are unknown.
func TestClosedGates(t *testing.T) {
	restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	restart.Spec.Schedule, restart.Spec.TimeZone, restart.Spec.FailureLimit = "0 3 * * *", "UTC", 3
	restart.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	web.Status.Replicas, web.Status.UpdatedReplicas, web.Status.AvailableReplicas = 1, 1, 1
	suspended := restart.DeepCopy()
	suspended.Spec.Suspend = true
	freeze := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "christmas"}}
	freeze.Spec = tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: noon.AddDate(0, 0, 1)}, Reason: "holidays"}
	for _, tc := range []struct {
		name     string
		restart  *tidekeeperv1.ScheduledRestart
		objects  map[string][]metav1.Object
		problems map[string]string
		want     string
		why      string
	}{
		{"all open", restart, map[string][]metav1.Object{"deployments": {web}}, nil, "", ""},
		{"without its workload", restart, nil, nil, "Target, Health", "there is no workload"},
		{"suspended", suspended, map[string][]metav1.Object{"deployments": {web}}, nil, "Schedule", "it is suspended"},
		{"a freeze", restart, map[string][]metav1.Object{"deployments": {web}, kindFreezes: {freeze}}, nil, "Freeze", "holidays"},
		{"not allowed", restart, nil, map[string]string{"deployments": "not allowed to list deployments"}, "not known", "not allowed to list deployments"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects := map[string][]metav1.Object{kindRestarts: {tc.restart}}
			for kind, list := range tc.objects {
				objects[kind] = list
			}
			gates := &gateReader{settings: view.SettingsOf(view.Manager{}.Published), snapshot: &snapshot{now: noon, objects: objects, problems: tc.problems}}
			closed, why := closedText(gates.of(tc.restart))
			if closed != tc.want || !strings.Contains(why, tc.why) {
				t.Errorf("%q, because %q; want %q, because %q", closed, why, tc.want, tc.why)
			}
		})
	}
}
