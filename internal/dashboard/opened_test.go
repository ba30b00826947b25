// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestOpenedPageOfALargeCluster checks that a page of a large cluster, when it is opened, shows the
// last room and forecast if they are recent, and their time. Its stream shows the change, as a
// program does, and so does a page that is opened later.
func TestOpenedPageOfALargeCluster(t *testing.T) {
	s := newTestSite(t, nil, largeWorld()...)
	m, now := memberOf(s), noon
	m.world.now, m.models.forecasts.now = func() time.Time { return now }, func() time.Time { return now }
	m.models.forecasts.run = func(context.Context, forecast.Input) forecast.Forecast {
		return forecast.Forecast{Summary: forecast.Summary{Started: 7}}
	}
	shows := func(h haste, asOf, nodes string) {
		t.Helper()
		e, err := s.render(t.Context(), "/", nil, h)
		if err != nil {
			t.Fatal(err)
		}
		if e.AsOf != asOf || !strings.Contains(e.HTML, ">"+nodes+"<") || strings.Contains(e.HTML, "old-forecast") {
			t.Errorf("as of %s, want %s with %s nodes and no old forecast:\n%.3000s", e.AsOf, asOf, nodes, e.HTML)
		}
	}
	shows(followed, "12:00:00", "1000/1000")
	addNode(s, "node-new")
	touchRestart(s)
	now = now.Add(4 * time.Second)
	shows(opened, "12:00:00", "1000/1000")
	m.models.forecasts.mu.Lock()
	m.models.forecasts.known[overviewAhead].rests = time.Time{}
	m.models.forecasts.mu.Unlock()
	shows(followed, "12:00:04", "1000/1001")
	addNode(s, "node-newer")
	now = now.Add(recentAge)
	shows(opened, now.Format(time.TimeOnly), "1000/1002")
}

// TestOpenedPageDoesNotWaitForItsForecast checks that a page of a large cluster, when it is opened,
// does not wait for a long forecast but says that it is being made. The pages are built again when
// the forecast is there. The test uses the fake clock of synctest.
func TestOpenedPageDoesNotWaitForItsForecast(t *testing.T) {
	kinds := largeWorld()
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite(t, nil, kinds...)
		m := memberOf(s)
		m.models.forecasts.run = func(context.Context, forecast.Input) forecast.Forecast {
			time.Sleep(forecastPatience / 2) // sleep: on the fake clock, the time that the forecast takes
			return forecast.Forecast{Summary: forecast.Summary{Started: 7}}
		}
		for _, v := range []struct {
			haste
			want  time.Duration
			shows string
		}{{opened, answerPatience, "The forecast is being made."}, {followed, forecastPatience/2 - answerPatience, "7 restarts will start"}, {opened, 0, "7 restarts will start"}} {
			began := time.Now()
			e, err := s.render(t.Context(), "/restarts", nil, v.haste)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != v.want || !strings.Contains(e.HTML, v.shows) {
				t.Errorf("%+v: the page is there after %s, want %s and %q:\n%.3000s", v.haste, took, v.want, v.shows, e.HTML)
			}
		}
		m.world.stopAll()
	})
}

// touchRestart records a change of the first ScheduledRestart.
func touchRestart(s *Site) {
	w := memberOf(s).world
	w.mu.Lock()
	defer w.mu.Unlock()
	restarts := w.feeds[kindRestarts]
	restarts.touch(restarts.list()[0], false)
	w.change(restarts)
}

// TestSortedList checks that the sorted list of a kind follows each addition, update and deletion
// of its objects, and that earlier lists are unchanged.
func TestSortedList(t *testing.T) {
	f := &feed{store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	object := func(name, version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	names := func(list []metav1.Object) string {
		text := ""
		for _, o := range list {
			text += o.GetName() + o.GetResourceVersion() + " "
		}
		return text
	}
	set := func(o *corev1.Node) { _ = f.store.Add(o); f.touch(o, false) }
	unset := func(o *corev1.Node) {
		_ = f.store.Delete(o)
		f.touch(cache.DeletedFinalStateUnknown{Obj: o}, true)
	}
	set(object("b", "1"))
	set(object("d", "1"))
	first := f.list()
	set(object("a", "1"))
	set(object("b", "2"))
	set(object("c", "1"))
	unset(object("d", "1"))
	unset(object("e", "1"))
	if got, want := names(f.list()), "a1 b2 c1 "; got != want {
		t.Errorf("the list is %s, want %s", got, want)
	}
	if got, want := names(first), "b1 d1 "; got != want {
		t.Errorf("the first list is now %s, want %s", got, want)
	}
	for i := range 2 * mostTouched {
		set(object(fmt.Sprintf("n%03d", i), "1"))
	}
	if got, want := len(f.list()), 3+2*mostTouched; got != want || len(f.touched) > 0 {
		t.Errorf("the list has %d objects, want %d", got, want)
	}
}

// TestFirstPageComesBeforeAllObjects checks that a page is shown with the kinds that have been read
// while the list of another kind is late, that the page says so, and that it does not wait again. It
// waits longer for its main kind than for the others, and not for its lookups in addition. A program
// waits longer for each kind. The test uses the fake clock of synctest.
func TestFirstPageComesBeforeAllObjects(t *testing.T) {
	pools := &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}}}
	type visit struct {
		haste
		want time.Duration
	}
	const lookup = time.Second // of the manager, which only the overview needs
	for _, tc := range []struct {
		name, path string
		pools      time.Duration // until the list of pools, which is the main kind of all paths
		shown      string
		visits     []visit
	}{
		{"the main kind is there", "/capacity", 0, "the API server has not sent the pods yet", []visit{{standard.opened, restShown}, {standard.followed, 0}, {standard.patient, firstRead}, {standard.patient, 0}}},
		{"the main kind comes", "/pools/worker", time.Second, "the API server has not sent the pods yet", []visit{{standard.opened, time.Second + restShown}, {standard.followed, 0}}},
		{"the main kind does not come", "/", time.Hour, "the API server has not sent the nodepools yet", []visit{{standard.opened, firstShown + answerPatience}, {standard.followed, lookup - answerPatience}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f fakeKind
				kinds := []Kind{late(f.kind(kindPools, &tidekeeperv1.NodePool{}, pools, nil), tc.pools), late(f.kind(kindPods, &corev1.Pod{}, &corev1.PodList{}, nil), time.Hour)}
				for _, name := range overviewKinds {
					if name != kindPools && name != kindPods {
						kinds = append(kinds, f.kind(name, &corev1.Node{}, &corev1.NodeList{}, nil))
					}
				}
				s := newTestSite(t, nil, kinds...)
				memberOf(s).models.lookups.cluster.Manager = func(context.Context) view.Manager {
					time.Sleep(lookup) // sleep: on the fake clock, the time that the lookup takes
					return view.Manager{}
				}
				for _, v := range tc.visits {
					began := time.Now()
					e, err := s.render(t.Context(), tc.path, nil, v.haste)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took != v.want || !strings.Contains(e.HTML, tc.shown) {
						t.Errorf("%+v: the page is there after %s, want %s:\n%s", v.haste, took, v.want, e.HTML)
					}
				}
				memberOf(s).world.stopAll()
			})
		})
	}
}

// late returns a kind whose lists are delayed.
func late(kind Kind, by time.Duration) Kind {
	source := kind.Source.(unsupported)
	list := source.ListWithContextFunc
	source.ListWatch = &cache.ListWatch{WatchFuncWithContext: source.WatchFuncWithContext, ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		select {
		case <-time.After(by):
			return list(ctx, o)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	kind.Source = source
	return kind
}

// TestUnknownEvents checks that pages say that the events about an object are unknown if they cannot
// be listed, instead of none, and that the JSON data then has null.
func TestUnknownEvents(t *testing.T) {
	s := newTestSite(t, nil, largeWorld()...)
	memberOf(s).models.lookups.cluster.Events = func(context.Context, ObjectRef) ([]corev1.Event, error) {
		return nil, errors.New("not allowed to list events, as kubectl auth can-i list events shows")
	}
	for path, query := range map[string]url.Values{"/pools/worker": nil, "/pods": nil, "/pods?": {"pod": {"team-1/app-1-1"}}} {
		e, err := s.render(t.Context(), strings.TrimSuffix(path, "?"), query, patient)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(e.HTML, "ot known: not allowed to list events, as kubectl auth can-i list events shows.") || strings.Contains(e.HTML, ">None.<") || strings.Contains(e.HTML, "Where nothing is named") {
			t.Errorf("%s does not say that the events are not known:\n%.3000s", path, e.HTML)
		}
	}
	answer := send(s, "GET", "/pools/worker.json", "127.0.0.1:1", map[string]string{"Authorization": "Bearer " + testToken}, "")
	if !strings.Contains(answer.Body.String(), `"events": null`) {
		t.Errorf("the data has events: %d, %.300s", answer.Code, answer.Body)
	}
}
