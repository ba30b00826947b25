// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// siteOf returns the site of a cluster with a restart and a Deployment. Reading the kinds for which
// refused returns true fails with the error `unread`.
func siteOf(t *testing.T, unread error, refused func(kind string) bool) *Site {
	t.Helper()
	lists := map[string]struct{ object, list runtime.Object }{
		kindPools:        {&tidekeeperv1.NodePool{}, &tidekeeperv1.NodePoolList{}},
		kindNodes:        {&corev1.Node{}, &corev1.NodeList{}},
		"deployments":    {&appsv1.Deployment{}, &appsv1.DeploymentList{Items: []appsv1.Deployment{healthyWeb()}}},
		kindMaintenances: {&tidekeeperv1.NodeMaintenance{}, &tidekeeperv1.NodeMaintenanceList{}},
		kindRestarts:     {&tidekeeperv1.ScheduledRestart{}, &tidekeeperv1.ScheduledRestartList{Items: []tidekeeperv1.ScheduledRestart{restartOfWeb()}}},
	}
	var f fakeKind
	var kinds []Kind
	for _, name := range overviewKinds {
		of, known := lists[name]
		if !known {
			of.object, of.list = &corev1.Pod{}, &corev1.PodList{}
		}
		var err error
		if refused(name) {
			err = unread
		}
		kind := f.kind(name, of.object, of.list, err)
		kind.Check = "kubectl auth can-i list " + name
		kinds = append(kinds, kind)
	}
	return newTestSite(t, nil, kinds...)
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
}

// zeros lists sentences that the pages of an empty cluster contain.
var zeros = []string{
	"There are no node pools", "No pod is pending", "Nothing will be missed", "No restart will start", ">None.<", "No pod was created", "No node to lose",
	"0 restarts will start", "No scheduled restart", "None. A freeze", "No pod matches",
}

// TestUnknownIsNotZero checks that every section of every page reports numbers as unknown if the
// user lacks a permission, with the command to check the permission. The JSON data is an error.
func TestUnknownIsNotZero(t *testing.T) {
	s := siteOf(t, forbidden(), func(string) bool { return true })
	for path, sections := range map[string]int{"/": 6, "/capacity": 4, "/restarts": 3, "/pods": 1} {
		e, _ := pageOf(t, s, path)
		for _, zero := range zeros {
			if strings.Contains(e.HTML, zero) {
				t.Errorf("%s says %q of what may not be read", path, zero)
			}
		}
		if got := strings.Count(e.HTML, `class="none unknown"`); got != sections {
			t.Errorf("%s says of %d sections that they are not known, want %d:\n%s", path, got, sections, e.HTML)
		}
		if !strings.Contains(e.HTML, "as kubectl auth can-i list ") {
			t.Errorf("%s does not name the command that shows the missing right", path)
		}
		data := path + ".json"
		if path == "/" {
			data = "/overview.json"
		}
		w := send(s, "GET", data, ourHost, bearer(testToken), "")
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "not known: not allowed to list") || !strings.Contains(w.Body.String(), "kubectl auth can-i") {
			t.Errorf("%s: %d %s, want 403 and the missing right", data, w.Code, w.Body)
		}
	}
	if w := send(s, "GET", "/pools/worker.json", ourHost, bearer(testToken), ""); w.Code != http.StatusForbidden {
		t.Errorf("a pool that may not be read: %d %s", w.Code, w.Body)
	}
}

// TestKnownIsZero checks that a user with all permissions sees the sentences about an empty
// cluster.
func TestKnownIsZero(t *testing.T) {
	s := siteOf(t, nil, func(string) bool { return false })
	for path, want := range map[string]string{
		"/": "There are no node pools", "/capacity": "No node to lose", "/restarts": "Nothing will be missed", "/pods": "No pod was created",
	} {
		if e, _ := pageOf(t, s, path); !strings.Contains(e.HTML, want) || strings.Contains(e.HTML, "unknown") {
			t.Errorf("%s does not say %q, or that something is not known:\n%s", path, want, e.HTML)
		}
	}
}

// TestForecastWithoutFreezes checks that a forecast names the kinds that could not be read, Freezes
// or workloads, and then does not claim that no ticks will be missed.
func TestForecastWithoutFreezes(t *testing.T) {
	s := siteOf(t, forbidden(), func(kind string) bool { return kind == kindFreezes || kind == "deployments" })
	for _, path := range []string{"/", "/restarts"} {
		e, _ := pageOf(t, s, path)
		if !strings.Contains(e.HTML, "The forecast is made without deployments, freezes, which are not known") || !strings.Contains(e.HTML, "Nothing is known to be missed") || strings.Contains(e.HTML, "Nothing will be missed") {
			t.Errorf("%s promises too much:\n%s", path, e.HTML)
		}
	}
}

// TestUnservedIsUnavailable checks that a kind that the cluster does not serve is not reported as a
// missing permission.
func TestUnservedIsUnavailable(t *testing.T) {
	s := siteOf(t, apierrors.NewNotFound(schema.GroupResource{}, ""), func(kind string) bool { return kind == kindRestarts })
	w := send(s, "GET", "/restarts.json", ourHost, bearer(testToken), "")
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "can-i") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestFleetIsNotZero checks that a page about several clusters makes no claims about the clusters
// that could not be read.
func TestFleetIsNotZero(t *testing.T) {
	blind, seeing := memberOf(siteOf(t, forbidden(), func(kind string) bool { return kind != kindNodes })), memberOf(siteOf(t, nil, func(string) bool { return false }))
	blind.frame.about.Context, seeing.frame.about.Context = "blind", "seeing"
	s := NewFleet([]*Member{blind, seeing}, Options{Token: testToken, Now: func() time.Time { return noon }, Local: time.UTC})
	e, _ := pageOf(t, s, "/")
	for _, zero := range zeros {
		if strings.Contains(e.HTML, zero) {
			t.Errorf("the page says %q of all clusters", zero)
		}
	}
	w := send(s, "GET", "/overview.json", ourHost, bearer(testToken), "")
	if !strings.Contains(w.Body.String(), `"context": "blind"`) {
		t.Errorf("the data does not name the cluster that is not known: %s", w.Body)
	}
}

// TestOverdueTickShowsThatNoManagerRuns checks that an overdue tick is reported as evidence that no
// manager is running, even if the manager ran without leader election.
func TestOverdueTickShowsThatNoManagerRuns(t *testing.T) {
	due := metav1.NewTime(noon.Add(-time.Hour))
	for _, tc := range []struct {
		name   string
		change func(*tidekeeperv1.ScheduledRestart)
		want   bool
	}{
		{"its tick is to come", func(*tidekeeperv1.ScheduledRestart) {}, false},
		{"its tick is overdue", func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = &due }, true},
		{"the start of its spread is overdue", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime, r.Status.NextStartTime = &due, &due
		}, true},
		{"it has failed before", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime, r.Status.ConsecutiveFailures = &due, 1
		}, true},
		{"it waits, and its deadline is past", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime, r.Status.Conditions[0].Reason = &due, tidekeeperv1.ReasonTargetUnhealthy
		}, true},
		{"it waits, and its deadline is to come", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime, r.Status.Conditions[0].Reason, r.Spec.StartingDeadlineSeconds = &due, tidekeeperv1.ReasonTargetUnhealthy, 7200
		}, false},
		{"it is stalled", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime = &due
			r.Status.Conditions[0].Reason = tidekeeperv1.ReasonOrphaned
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: tidekeeperv1.ConditionStalled, Status: metav1.ConditionTrue})
		}, false},
		{"it is suspended", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime, r.Spec.Suspend = &due, true
		}, false},
	} {
		restart := restartOfWeb()
		restart.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: tidekeeperv1.ReasonScheduled}}
		tc.change(&restart)
		m := aMember(t, "prod", nil, answers, nil, []tidekeeperv1.ScheduledRestart{restart})
		m.models.lookups.cluster.Manager = func(context.Context) view.Manager { return view.ManagerOf(nil, noon) }
		e, _ := pageOf(t, NewSite(m, Options{Token: testToken, Now: func() time.Time { return noon }, Local: time.UTC}), "/")
		if got := strings.Contains(strings.ToLower(e.HTML), "no manager"); got != tc.want {
			t.Errorf("%s: it is said that no manager runs: %v, want %v", tc.name, got, tc.want)
		}
	}
}
