// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// healthyWeb returns the Deployment shop/web with all of its replicas available.
func healthyWeb() appsv1.Deployment {
	replicas := int32(2)
	return appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2},
	}
}

// restartOfWeb returns a ScheduledRestart of the Deployment shop/web that is due in an hour.
func restartOfWeb() tidekeeperv1.ScheduledRestart {
	restart := tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	restart.Spec.Schedule, restart.Spec.TimeZone, restart.Spec.TargetRef = "0 13 * * *", "UTC", tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}
	restart.Spec.FailureLimit, restart.Spec.StartingDeadlineSeconds = 3, 600
	next := metav1.NewTime(noon.Add(time.Hour))
	restart.Status.NextScheduleTime = &next
	return restart
}

// aMember returns the pages of one of several clusters, which contains the given pools and
// restarts. The function read intercepts each list request.
func aMember(t *testing.T, name string, actions Actions, read func(ctx context.Context, list runtime.Object) (runtime.Object, error), pools []tidekeeperv1.NodePool, restarts []tidekeeperv1.ScheduledRestart) *Member {
	t.Helper()
	var f fakeKind
	kinds := []Kind{
		f.kind(kindPools, &tidekeeperv1.NodePool{}, &tidekeeperv1.NodePoolList{Items: pools}, nil),
		f.kind(kindNodes, &corev1.Node{}, &corev1.NodeList{}, nil),
		f.kind(kindRestarts, &tidekeeperv1.ScheduledRestart{}, &tidekeeperv1.ScheduledRestartList{Items: restarts}, nil),
	}
	for _, name := range restartsKinds[1:] {
		if name == "deployments" {
			kinds = append(kinds, f.kind(name, &appsv1.Deployment{}, &appsv1.DeploymentList{Items: []appsv1.Deployment{healthyWeb()}}, nil))
			continue
		}
		kinds = append(kinds, f.kind(name, &corev1.Pod{}, &corev1.PodList{}, nil))
	}
	for i := range kinds {
		source, _ := kinds[i].Source.(unsupported)
		list := source.ListWithContextFunc
		source.ListWatch = &cache.ListWatch{WatchFuncWithContext: source.WatchFuncWithContext, ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, o)
			if err != nil {
				return nil, err
			}
			return read(ctx, objects)
		}}
		kinds[i].Source = source
		kinds[i].Explain = func(err error) string { return err.Error() }
	}
	s := newTestSite(t, actions, kinds...)
	m := memberOf(s)
	m.frame.about.Context = name
	return m
}

// answers simulates a cluster that answers immediately.
func answers(_ context.Context, list runtime.Object) (runtime.Object, error) { return list, nil }

// refuses simulates an API server whose port is closed.
func refuses(context.Context, runtime.Object) (runtime.Object, error) {
	return nil, errors.New("connection refused")
}

// hangs simulates an API server that accepts connections but never responds.
func hangs(ctx context.Context, _ runtime.Object) (runtime.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func aFleet(t *testing.T) (fleet *Site, prod, edge *fakeActions) {
	t.Helper()
	pool := tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	prod, edge = &fakeActions{allowed: true}, &fakeActions{allowed: true}
	pools, restarts := []tidekeeperv1.NodePool{pool}, []tidekeeperv1.ScheduledRestart{restartOfWeb()}
	return NewFleet([]*Member{
		aMember(t, "prod", prod, answers, pools, restarts), aMember(t, "edge/1", edge, answers, pools, restarts),
		aMember(t, "empty", nil, answers, nil, nil), aMember(t, "closed", nil, refuses, nil, nil), aMember(t, "silent", nil, hangs, nil, nil),
	}, Options{Token: testToken, Now: func() time.Time { return noon }, Local: time.UTC}), prod, edge
}

// pageOf returns a page, and the time that serving it took.
func pageOf(t *testing.T, s *Site, path string) (*envelope, time.Duration) {
	t.Helper()
	began := time.Now()
	w := send(s, "GET", "/-/page"+path, ourHost, bearer(testToken), "")
	e := &envelope{}
	if err := json.Unmarshal(w.Body.Bytes(), e); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s: %v", path, w.Code, w.Body, err)
	}
	return e, time.Since(began)
}

// TestFleet checks that a page shows all clusters, with a row that explains why a cluster did not
// respond. Only the first page waits for such a cluster, and only for a limited time. The test uses
// the fake clock of synctest.
func TestFleet(t *testing.T) { synctest.Test(t, testFleet) }

func testFleet(t *testing.T) {
	s, _, _ := aFleet(t)
	first, took := pageOf(t, s, "/")
	if took != fleetRead {
		t.Errorf("the first page took %s, and the cluster that does not answer should be waited for %s", took, fleetRead)
	}
	again, took := pageOf(t, s, "/")
	if took != 0 {
		t.Errorf("the second page took %s: a cluster that does not answer is waited for again", took)
	}
	if first.HTML != again.HTML {
		t.Error("the pages differ")
	}
	restarts, _ := pageOf(t, s, "/restarts")
	for _, want := range []struct{ html, text string }{
		{first.HTML, `<tr id="pool-prod-worker"><td><bdi>prod</bdi></td>`},
		{first.HTML, `<a href="/pools/worker?context=prod">`},
		{first.HTML, `<a href="/pools/worker?context=edge%2F1">`},
		{first.HTML, `<tr id="cluster-empty">`},
		{first.HTML, "no node pools"},
		{first.HTML, "connection refused"},
		{first.HTML, "the API server has not sent the nodepools yet"},
		{first.HTML, "Most at once: <strong>2 restarts today 13:00 UTC"},
		{first.HTML, "pools -o wide --contexts prod,edge/1,empty,closed,silent"},
		{restarts.HTML, "Most at once: <strong>2 restarts today 13:00 UTC"},
		{restarts.HTML, `<bdi><span class="ns">prod: shop/</span>web</bdi>`},
		{restarts.HTML, `href="/restarts?context=edge%2F1&amp;restart=shop%2Fweb"`},
		{restarts.HTML, "closed is not counted: connection refused"},
		{restarts.HTML, "restarts next --for 24h -A --contexts prod,edge/1,empty,closed,silent"},
	} {
		if !strings.Contains(want.html, want.text) {
			t.Errorf("the page lacks %q:\n%s", want.text, want.html)
		}
	}
	if strings.Count(first.HTML, `<tr id="pool-`) != 2 || strings.Count(first.HTML, `<tr id="cluster-`) != 3 {
		t.Errorf("there are not two pools and three other clusters:\n%s", first.HTML)
	}
	var data fleetData[fleetPool]
	if err := json.Unmarshal(send(s, "GET", "/overview.json", ourHost, bearer(testToken), "").Body.Bytes(), &data); err != nil || len(data.Items) != 2 || data.Items[0].Context == data.Items[1].Context || len(data.Errors) != 2 {
		t.Errorf("for programs: %+v, %v", data, err)
	}
}

// TestAddressesNameTheCluster checks that a page's URL, links and commands name the cluster.
func TestAddressesNameTheCluster(t *testing.T) { synctest.Test(t, addressesNameTheCluster) }

func addressesNameTheCluster(t *testing.T) {
	s, _, _ := aFleet(t)
	for path, want := range map[string]string{
		"/pools/worker?context=edge%2F1": "pools describe worker --context edge/1", "/pools/worker": "pools describe worker --context prod", "/?context=edge%2F1": "pools -o wide --context edge/1",
		"/capacity?cpu=1&context=prod": " --context prod", "/restarts?context=prod": "restarts forecast --for 24h -A --context prod", "/pods?context=prod": " --context prod",
	} {
		e, _ := pageOf(t, s, path)
		if e.Context == "" || e.About.Context != e.Context || !strings.Contains(e.Command, want) {
			t.Errorf("%s is about %q (%q), command %q, want %q", path, e.Context, e.About.Context, e.Command, want)
		}
		if !strings.Contains(e.HTML, `aria-current="true"><bdi>`+e.Context) {
			t.Errorf("%s does not mark its cluster in\n%.400s", path, e.HTML)
		}
		_, content, _ := strings.Cut(e.HTML, "</p>") // Skip the links to the other clusters.
		for _, link := range strings.Split(content, `href="/`)[1:] {
			if target, _, _ := strings.Cut(link, `"`); !strings.Contains(target, "context=") {
				t.Errorf("%s has the link /%s, which names no cluster", path, target)
			}
		}
	}
	for path, code := range map[string]int{"/?context=none": http.StatusNotFound, "/pools/worker?context=PROD": http.StatusNotFound, "/pools/none?context=prod": http.StatusNotFound, "/nowhere?context=prod": http.StatusNotFound} {
		if w := send(s, "GET", "/-/page"+path, ourHost, bearer(testToken), ""); w.Code != code {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, code)
		}
	}
}

// TestActionsNameTheCluster checks that an action is performed only in the cluster that the
// dialog's request names.
func TestActionsNameTheCluster(t *testing.T) { synctest.Test(t, actionsNameTheCluster) }

func actionsNameTheCluster(t *testing.T) {
	s, prod, edge := aFleet(t)
	act := func(query string) int {
		headers := merge(bearer(testToken), "Content-Type", "application/json")
		return send(s, "POST", "/-/act"+query, ourHost, headers, `{"action":"now","namespace":"shop","name":"web"}`).Code
	}
	for query, code := range map[string]int{"": http.StatusBadRequest, "?context=": http.StatusBadRequest, "?context=none": http.StatusNotFound, "?context=closed": http.StatusForbidden} {
		if got := act(query); got != code {
			t.Errorf("%q: %d, want %d", query, got, code)
		}
	}
	if len(prod.done)+len(edge.done) > 0 {
		t.Fatalf("something was done without a cluster: %q, %q", prod.done, edge.done)
	}
	if code := act("?context=edge%2F1"); code != http.StatusOK || len(prod.done) != 0 || len(edge.done) != 1 {
		t.Errorf("%d; done in prod %q, in edge %q", code, prod.done, edge.done)
	}
	all, _ := pageOf(t, s, "/restarts?restart=shop/web")
	if strings.Contains(all.HTML, "data-act") {
		t.Error("a page about all clusters has buttons")
	}
	one, _ := pageOf(t, s, "/restarts?context=edge%2F1&restart=shop/web")
	if !strings.Contains(one.HTML, "data-act") || !strings.Contains(one.HTML, "context edge/1") {
		t.Errorf("the dialog does not name the context:\n%s", one.HTML)
	}
}

// TestFleetFollowsAllClusters checks that a change in any cluster updates the pages about all
// clusters.
func TestFleetFollowsAllClusters(t *testing.T) {
	s, _, _ := aFleet(t)
	for _, m := range s.fleet.members {
		changed := s.pages.nextChange()
		m.world.mu.Lock()
		m.world.change(&feed{})
		m.world.mu.Unlock()
		select {
		case <-changed:
		default:
			t.Errorf("a change in %s is not noticed", m.frame.about.Context)
		}
	}
}
