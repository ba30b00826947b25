// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestNothingIsAskedAfterTheLastTab checks that the kinds of a page are watched while a tab shows
// it. A minute after the last tab was closed, there must be no watch and no other request to the
// API server.
func TestNothingIsAskedAfterTheLastTab(t *testing.T) {
	var mu sync.Mutex
	now, questions := noon, 0
	later := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	ask := func() { mu.Lock(); defer mu.Unlock(); questions++ }
	asked := func() int { mu.Lock(); defer mu.Unlock(); return questions }
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	var f fakeKind
	world := NewWorld([]Kind{
		f.kind(kindPools, &tidekeeperv1.NodePool{}, &tidekeeperv1.NodePoolList{}, nil), f.kind(kindNodes, &corev1.Node{}, &corev1.NodeList{}, nil), f.kind(kindPods, &corev1.Pod{}, &corev1.PodList{}, nil),
	}, clock)
	t.Cleanup(world.stopAll)
	o := Options{Token: testToken, Now: clock, Local: time.UTC}
	s := NewSite(NewMember(world, Cluster{
		Metrics: func(context.Context) view.NodeMetrics { ask(); return view.NodeMetrics{} },
		Events:  func(context.Context, ObjectRef) ([]corev1.Event, error) { ask(); return nil, nil },
		Manager: func(context.Context) view.Manager { ask(); return view.Manager{Leader: "a"} },
		PodLike: func(context.Context, string, string) (*corev1.Pod, string, error) {
			ask()
			return view.PodOf(nil), "", nil
		},
	}, o), o)
	l := memberOf(s).models.lookups
	open := func() int { return asking(&l.metrics) + asking(&l.events) + asking(&l.managers) + asking(&l.likes) }
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/-/stream/capacity?like=shop/deployment/web", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: page") {
		t.Fatalf("%q, %v", line, err)
	}
	eventually(t, "its kinds are watched, and the API server was asked", func() bool { _, watching := f.open(); return watching == 3 && asked() > 0 && s.Streams() == 1 })
	// The watches must continue while a tab is open, even if building or sending a page takes long.
	later(10 * time.Minute)
	if n := world.EndIdle(); n != 3 {
		t.Errorf("%d kinds are watched while a tab is open, want 3", n)
	}
	leave()
	eventually(t, "the stream is gone, and no question is open", func() bool { return s.Streams() == 0 && open() == 0 })
	before := asked()
	later(time.Minute)
	if n := world.EndIdle(); n != 0 {
		t.Errorf("%d kinds are watched a minute after the last tab", n)
	}
	eventually(t, "nothing is watched", func() bool { _, watching := f.open(); return watching == 0 })
	lists, _ := f.open()
	if asked() != before || lists != 3 {
		t.Errorf("%d questions and %d lists, want %d and 3", asked(), lists, before)
	}
}

// asking returns the number of lookups in progress.
func asking[K comparable, V any](m *memo[K, V]) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, a := range m.kept {
		if a.asking != nil {
			n++
		}
	}
	return n
}
