// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// siteWith returns the site of a cluster that serves the given kinds and contains the given lists,
// keyed by kind. Other kinds have no objects.
func siteWith(t *testing.T, lists map[string]runtime.Object, given ...Kind) *Site {
	t.Helper()
	objects := map[string]runtime.Object{
		kindPools: &tidekeeperv1.NodePool{}, kindNodes: &corev1.Node{}, kindPods: &corev1.Pod{}, "deployments": &appsv1.Deployment{},
		kindRestarts: &tidekeeperv1.ScheduledRestart{}, kindFreezes: &tidekeeperv1.Freeze{}, kindMaintenances: &tidekeeperv1.NodeMaintenance{},
	}
	var f fakeKind
	kinds := given
	for _, name := range overviewKinds {
		if slices.ContainsFunc(given, func(k Kind) bool { return k.Name == name }) {
			continue
		}
		object, list := objects[name], lists[name]
		if object == nil {
			object = &corev1.ConfigMap{}
		}
		if list == nil {
			list = &corev1.PodList{}
		}
		kinds = append(kinds, f.kind(name, object, list, nil))
	}
	return newTestSite(t, nil, kinds...)
}

// brokenEveryTwoMinutes returns an unhealthy Deployment with a restart every two minutes, and a
// healthy Deployment.
func brokenEveryTwoMinutes() map[string]runtime.Object {
	broken, web := healthyWeb(), restartOfWeb()
	broken.Name, broken.Status.ReadyReplicas, broken.Status.AvailableReplicas = "broken", 0, 0
	web.Spec.ProgressDeadlineSeconds = 600
	often := *web.DeepCopy()
	often.Name, often.Spec.TargetRef.Name, often.Spec.Schedule, often.Spec.TimeZone = "broken", "broken", "*/2 * * * *", "Europe/Berlin"
	often.Spec.StartingDeadlineSeconds = 30
	next := metav1.NewTime(noon)
	often.Status.NextScheduleTime = &next
	return map[string]runtime.Object{
		"deployments": &appsv1.DeploymentList{Items: []appsv1.Deployment{healthyWeb(), broken}},
		kindRestarts:  &tidekeeperv1.ScheduledRestartList{Items: []tidekeeperv1.ScheduledRestart{often, web}},
	}
}

// TestABrokenWorkloadIsOneLine checks that all missed ticks of an unhealthy workload are shown in
// one row, with a link to the restart.
func TestABrokenWorkloadIsOneLine(t *testing.T) {
	shown := html(t, siteWith(t, brokenEveryTwoMinutes()), "/restarts")
	_, rest, found := strings.Cut(shown, `<table class="unserved`)
	table, after, _ := strings.Cut(rest, "</table>")
	if !found || strings.Count(table, "<tr>") != 2 {
		t.Fatalf("the table of the restarts that do not take place has not a single line:\n%s", table)
	}
	for _, want := range []string{`href="/restarts?restart=shop%2Fbroken"`, "all 716, 1 waiting</td>", "Missed/TargetUnhealthy", `<time datetime="2026-11-22T12:00:00Z" title="2026-11-22 12:00:00 UTC">today 12:00</time>`, "tomorrow 11:50"} {
		if !strings.Contains(table, want) {
			t.Errorf("its line lacks %q:\n%s", want, table)
		}
	}
	if !strings.Contains(shown, "1 restart will start, ") || !strings.Contains(shown, "716 ticks of shop/broken</span> will be missed") {
		t.Errorf("the sentence above it does not say what is missed:\n%.2000s", shown)
	}
	if strip, list := strings.Index(after, `<figure class="strip">`), strings.Index(after, "Past and coming"); strip < 0 || list < strip {
		t.Error("the list is not below the strip")
	}
	// The target's name is omitted if it equals the restart's name. The schedule's time zone is
	// shown if it differs from the page's.
	row, _, _ := strings.Cut(after[strings.Index(after, `<tr id="restart-shop/broken"`):], "</tr>")
	if !strings.Contains(row, "<small><bdi>Deployment</bdi></small>") || !strings.Contains(row, "<small><bdi>Europe/Berlin</bdi></small>") {
		t.Errorf("the row of the restart is:\n%s", row)
	}
}

// TestClosedGatesComeFirst checks that a restart's panel lists the closed gates first.
func TestClosedGatesComeFirst(t *testing.T) {
	e, err := siteWith(t, brokenEveryTwoMinutes()).render(t.Context(), "/restarts", url.Values{"restart": {"shop/broken"}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	_, gates, found := strings.Cut(e.HTML, "A restart that is requested now would have to wait")
	gates, _, _ = strings.Cut(gates, "</table>")
	closed, opened := strings.LastIndex(gates, "closed</span>"), strings.Index(gates, "open</span>")
	if !found || closed < 0 || opened < closed {
		t.Errorf("the gates are:\n%s", gates)
	}
}

// TestFilterIsThatOfTheCommand checks that the filter ignores case, and that the command below a
// list prints the same rows as the page.
func TestFilterIsThatOfTheCommand(t *testing.T) {
	lists := brokenEveryTwoMinutes()
	lists[kindPools] = &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}, {ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}}}
	lists[kindPods] = &corev1.PodList{Items: []corev1.Pod{startedPod("web-1", 10, 1, 1), startedPod("db-1", 10, 1, 1)}}
	s := siteWith(t, lists)
	for _, tc := range []struct {
		path, filter, has, lacks string
		commands                 []string
	}{
		{"/", "WORK", `id="pool-worker"`, `id="pool-gpu"`, []string{"kubectl tide pools worker -o wide"}},
		{"/", "nowhere", "No pool matches the filter.", `id="pool-gpu"`, []string{"kubectl tide pools nowhere -o wide"}},
		{"/restarts", "Broken", `id="restart-shop/broken"`, `id="restart-shop/web"`, []string{"kubectl tide restarts -A --name Broken", "kubectl tide restarts forecast --for 24h -A"}},
		{"/pods", "WEB", `id="pod-shop/web-1"`, `id="pod-shop/db-1"`, []string{"kubectl tide pods slow -A --name WEB --since 1h --ready", "kubectl tide pods slow -A --name WEB --since 1h"}},
	} {
		e, err := s.render(t.Context(), tc.path, url.Values{"q": {tc.filter}}, patient)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(e.HTML, tc.has) || strings.Contains(e.HTML, tc.lacks) {
			t.Errorf("%s with the filter %s does not have %s, or has %s", tc.path, tc.filter, tc.has, tc.lacks)
		}
		var shown []string
		for _, part := range strings.Split(e.HTML, "<code")[1:] {
			_, text, _ := strings.Cut(part, ">")
			text, _, _ = strings.Cut(text, "</code>")
			shown = append(shown, text)
		}
		for _, command := range tc.commands {
			if !slices.Contains(shown, command) {
				t.Errorf("%s with the filter %s lacks the command %s: %q", tc.path, tc.filter, command, shown)
			}
		}
	}
}
