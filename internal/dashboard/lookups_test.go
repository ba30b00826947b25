// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestMemo checks that an answer is cached for a limited time, that the number of cached answers is
// bounded, and that an outdated answer is returned for a while during the next lookup.
func TestMemo(t *testing.T) {
	asked, late := 0, make(chan struct{}, 1)
	var held sync.Mutex
	m := memo[int, int]{age: 10 * time.Second}
	get := func(question int, after time.Duration) (int, *missing) {
		return m.get(question, noon.Add(after), func() int { held.Lock(); defer held.Unlock(); asked++; return asked }, func() { late <- struct{}{} })
	}
	for _, tc := range []struct {
		name     string
		question int
		after    time.Duration
		missing  bool
		old      bool
		want     int
	}{
		{"the first time", 1, 0, true, false, 1},
		{"again", 1, 9 * time.Second, false, false, 1},
		{"another question", 2, 9 * time.Second, true, false, 2},
		{"a little too old", 1, 10 * time.Second, false, true, 3},
		{"the other is younger", 2, 18 * time.Second, false, false, 2},
		{"much too old", 2, 18*time.Second + 10*time.Second + outdatedAge, true, false, 4},
	} {
		held.Lock()
		got, lacks := get(tc.question, tc.after)
		if (lacks != nil) != tc.missing || tc.old && got != 1 {
			t.Errorf("%s: it is missing: %v, and else %d", tc.name, lacks != nil, got)
		}
		held.Unlock()
		switch {
		case lacks != nil:
			<-lacks.known
		case tc.old:
			<-late
		}
		if got, _ = get(tc.question, tc.after); got != tc.want {
			t.Errorf("%s: answer %d, want %d", tc.name, got, tc.want)
		}
	}
	for question := range 3 * mostAnswers {
		if _, lacks := get(question, 0); lacks != nil {
			<-lacks.known
		}
	}
	if len(m.kept) > mostAnswers {
		t.Errorf("%d answers are kept, want at most %d", len(m.kept), mostAnswers)
	}
}

// TestManagerWhileLost checks that pages show the manager's last known state while the API server
// is unreachable.
func TestManagerWhileLost(t *testing.T) {
	asked := 0
	l := newLookups(Cluster{Manager: func(context.Context) view.Manager { asked++; return view.Manager{Leader: "a"} }})
	for _, tc := range []struct {
		name      string
		after     time.Duration
		reachable bool
		leader    string
		asked     int
	}{
		{"never reached", 0, false, "", 0},
		{"reached", 0, true, "a", 1},
		{"lost, and the answer is old", time.Hour, false, "a", 1},
		{"reached again", time.Hour, true, "a", 2},
	} {
		q := l.questions(t.Context(), noon.Add(tc.after))
		got := q.manager(tc.reachable)
		if q.await() {
			got = q.manager(tc.reachable)
		}
		if got.Leader != tc.leader || asked != tc.asked {
			t.Errorf("%s: leader %q after %d requests, want %q after %d", tc.name, got.Leader, asked, tc.leader, tc.asked)
		}
	}
}

// written is an http.ResponseWriter that passes on the pages that a stream sends.
type written struct{ pages chan string }

func (written) Header() http.Header              { return http.Header{} }
func (written) WriteHeader(int)                  {}
func (written) SetWriteDeadline(time.Time) error { return nil }
func (written) Flush()                           {}

// Write implements io.Writer.
func (w written) Write(data []byte) (int, error) {
	w.pages <- string(data)
	return len(data), nil
}

// heldSite returns the site of a cluster with a pool and a node. The site uses the fake clock of
// synctest. Its API server holds back responses to event requests until the channel returned by
// held is closed.
func heldSite(t *testing.T, held func() <-chan struct{}) *Site {
	t.Helper()
	var f fakeKind
	pool := tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	world := NewWorld([]Kind{
		f.kind(kindPools, &tidekeeperv1.NodePool{}, &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{pool}}, nil),
		f.kind(kindNodes, &corev1.Node{}, &corev1.NodeList{}, nil), f.kind(kindPods, &corev1.Pod{}, &corev1.PodList{}, nil), noMaintenances(),
	}, time.Now)
	t.Cleanup(world.stopAll)
	cluster := Cluster{
		Metrics: func(context.Context) view.NodeMetrics { return view.NodeMetrics{Problem: "none"} },
		Manager: func(context.Context) view.Manager { return view.Manager{Leader: "a"} },
		Events: func(context.Context, ObjectRef) ([]corev1.Event, error) {
			if hold := held(); hold != nil {
				<-hold
				return []corev1.Event{{Reason: "Late", Message: "after the release", LastTimestamp: metav1.Now()}}, nil
			}
			return nil, nil
		},
	}
	o := Options{Token: testToken, Now: time.Now, Local: time.UTC}
	return NewSite(NewMember(world, cluster, o), o)
}

// addNode adds a node to the pool as the node watch does.
func addNode(s *Site, name string) {
	w := memberOf(s).world
	w.mu.Lock()
	defer w.mu.Unlock()
	nodes := w.feeds[kindNodes]
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}
	_ = nodes.store.Add(node)
	nodes.touch(node, false)
	w.change(nodes)
}

// TestSlowAnswerSlowsNoUpdate checks that pages show changes of the cluster without delay while the
// API server holds back a response, including the page that needs the response. Once the response
// arrives, this page is updated. The test uses the fake clock of synctest.
func TestSlowAnswerSlowsNoUpdate(t *testing.T) { synctest.Test(t, slowAnswerSlowsNoUpdate) }

func slowAnswerSlowsNoUpdate(t *testing.T) {
	var mu sync.Mutex
	var hold chan struct{}
	s := heldSite(t, func() <-chan struct{} { mu.Lock(); defer mu.Unlock(); return hold })
	ctx, leave := context.WithCancel(t.Context())
	out, ended := written{make(chan string, 1000)}, make(chan struct{})
	go func() {
		defer close(ended)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "/-/stream/pools/worker", nil)
		s.serveStream(out, r)
	}()
	defer func() { leave(); <-ended }()
	shows := func(text string, within time.Duration) {
		t.Helper()
		began := time.Now()
		for deadline := time.After(time.Minute); ; {
			select {
			case page := <-out.pages:
				if !strings.Contains(page, text) {
					continue
				}
				if took := time.Since(began); took > within {
					t.Errorf("%q is shown after %s, want at most %s", text, took, within)
				}
				return
			case <-deadline:
				t.Fatalf("%q is not shown in a minute", text)
			}
		}
	}
	shows("event: page", coalesce)
	shows("event: page", coalesce+beat)
	mu.Lock()
	hold = make(chan struct{})
	mu.Unlock()
	time.Sleep(eventsAge + beat) // sleep: on the fake clock, until the events are looked up again and the response is held back
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		addNode(s, name)
		shows(name, 2*coalesce)
	}
	began := time.Now()
	if _, err := s.render(t.Context(), "/capacity", url.Values{}, patient); err != nil || time.Since(began) > 0 {
		t.Errorf("another page takes %s, %v", time.Since(began), err)
	}
	mu.Lock()
	close(hold)
	mu.Unlock()
	shows("after the release", 2*coalesce)
}

// TestPageWaitsForItsAnswer checks that a new page waits for a response that the API server holds
// back, and that it does not delay other pages.
func TestPageWaitsForItsAnswer(t *testing.T) { synctest.Test(t, pageWaitsForItsAnswer) }

func pageWaitsForItsAnswer(t *testing.T) {
	hold := make(chan struct{})
	s := heldSite(t, func() <-chan struct{} { return hold })
	if _, err := s.render(t.Context(), "/capacity", url.Values{}, patient); err != nil { // Read the objects before the measurement begins.
		t.Fatal(err)
	}
	first := make(chan string, 1)
	go func() {
		e, err := s.render(t.Context(), "/pools/worker", url.Values{}, patient)
		if err != nil {
			t.Error(err)
			close(first)
			return
		}
		first <- e.HTML
	}()
	synctest.Wait()
	if lock := &memberOf(s).models.mu; lock.TryLock() {
		lock.Unlock()
	} else {
		close(hold)
		<-first
		t.Fatal("the lock of the pages is held while the API server is waited for")
	}
	began := time.Now()
	if _, err := s.render(t.Context(), "/capacity", url.Values{}, patient); err != nil || time.Since(began) > 0 {
		t.Errorf("another page takes %s, %v", time.Since(began), err)
	}
	select {
	case html := <-first:
		t.Errorf("the page is there without its answer:\n%s", html)
	default:
	}
	close(hold)
	if html := <-first; !strings.Contains(html, "after the release") {
		t.Errorf("the page lacks its answer:\n%s", html)
	}
}
