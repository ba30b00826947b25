// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// standard holds the haste of pages as users have it.
var standard = struct{ patient, opened, followed haste }{patient, opened, followed}

// TestMain makes pages wait for the first list of each kind for as long as a slow machine needs.
// Tests of how long they wait use the variable standard.
func TestMain(m *testing.M) {
	for _, h := range []*haste{&patient, &opened, &followed} {
		h.patience, h.rest = waitfor.Patience, waitfor.Patience
	}
	os.Exit(m.Run())
}

// fakeKind is a kind with a fixed list of objects. Its watches report no events and end with their
// context.
type fakeKind struct {
	mu       sync.Mutex
	lists    int
	watching int
}

// open returns the number of list requests so far, and the number of open watches.
func (f *fakeKind) open() (lists, watching int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists, f.watching
}

func (f *fakeKind) kind(name string, object runtime.Object, list runtime.Object, err error) Kind {
	return Kind{
		Name: name, Object: object, Explain: func(error) string { return "not allowed to list " + name },
		Source: unsupported{&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.lists++
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.watching++
				w := watch.NewFake()
				context.AfterFunc(ctx, func() {
					w.Stop()
					f.mu.Lock()
					defer f.mu.Unlock()
					f.watching--
				})
				return w, err
			},
		}},
	}
}

// unsupported is a source that does not support streaming lists.
type unsupported struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported makes the reflector send a list request before it watches.
func (unsupported) IsWatchListSemanticsUnSupported() bool { return true }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	waitfor.Nil(t, what, func() error {
		if !ok() {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestWatchesEndWithTheLastViewer checks that each kind is listed and watched only once, regardless
// of the number of pages. The watches end within a minute after the last page was closed.
func TestWatchesEndWithTheLastViewer(t *testing.T) {
	now := noon
	var clock sync.Mutex
	var nodes, pods fakeKind
	w := NewWorld([]Kind{
		nodes.kind("nodes", &corev1.Node{}, &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}}, nil),
		pods.kind("pods", &corev1.Pod{}, &corev1.PodList{}, nil),
	}, func() time.Time { clock.Lock(); defer clock.Unlock(); return now })
	defer w.stopAll()
	later := func(d time.Duration) { clock.Lock(); defer clock.Unlock(); now = now.Add(d) }

	for range 3 {
		if s := w.read(t.Context(), []string{"nodes"}, patient); len(listOf[*corev1.Node](s, "nodes")) != 1 {
			t.Fatalf("there are %d nodes, want 1", len(s.objects["nodes"]))
		}
	}
	eventually(t, "nodes are watched", func() bool { lists, watching := nodes.open(); return lists == 1 && watching == 1 })
	if lists, watching := pods.open(); lists+watching != 0 {
		t.Errorf("pods were listed %d times, and no page needs them", lists)
	}
	later(idleLimit - time.Second)
	first, second := w.hold([]string{"nodes"}), w.hold([]string{"nodes"}) // two open pages
	first()
	later(10 * idleLimit)
	if w.EndIdle() != 1 {
		t.Error("the watch has ended while a page is open")
	}
	second()
	later(idleLimit - time.Second)
	if w.EndIdle() != 1 {
		t.Error("the watch has ended before its time")
	}
	later(2 * time.Second)
	if w.EndIdle() != 0 {
		t.Error("the watch goes on a minute after the last viewer")
	}
	eventually(t, "nothing is watched", func() bool { _, watching := nodes.open(); return watching == 0 })
	if idleLimit >= time.Minute {
		t.Errorf("watches go on for %s, want less than a minute", idleLimit)
	}
}

// TestRefusalsAreAskedForAgain checks that a kind that was refused or is not served is requested
// again after some time, except during an outage, when each page would have to wait for the
// response.
func TestRefusalsAreAskedForAgain(t *testing.T) {
	for _, lost := range []string{"", "connection refused"} {
		var f fakeKind
		w := NewWorld([]Kind{f.kind("rollouts", &corev1.Pod{}, &corev1.PodList{}, nil), f.kind("nodes", &corev1.Node{}, &corev1.NodeList{}, nil)}, func() time.Time { return noon })
		before := &feed{unserved: true, since: noon.Add(-refusedLimit - time.Second), stop: func() {}, done: make(chan struct{}), synced: make(chan struct{})}
		nodes := &feed{lost: lost, stop: func() {}, done: make(chan struct{}), synced: make(chan struct{})}
		close(before.done)
		close(nodes.done)
		w.feeds["rollouts"], w.feeds["nodes"] = before, nodes
		if again := w.use([]string{"rollouts"})[0] != before; again != (lost == "") {
			t.Errorf("with an outage %q it is asked for again: %v", lost, again)
		}
		w.stopAll()
	}
}

// TestWithoutTheRightToListPods checks that a page reports the missing permission to list pods
// instead of showing 0 pods, and still shows the rest.
func TestWithoutTheRightToListPods(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", fmt.Errorf("no"))
	pool := tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	pool.Status.NodeCount = 1
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}
	var f fakeKind
	s := newTestSite(t, nil,
		f.kind(kindPools, &tidekeeperv1.NodePool{}, &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{pool}}, nil),
		f.kind(kindNodes, &corev1.Node{}, &corev1.NodeList{Items: []corev1.Node{node}}, nil),
		f.kind(kindPods, &corev1.Pod{}, &corev1.PodList{}, forbidden),
	)
	w := send(s, "GET", "/-/page/pools/worker", ourHost, bearer(testToken), "")
	var e envelope
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	for _, want := range []string{"not allowed to list pods", "node-1"} {
		if !strings.Contains(e.HTML, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(e.HTML, "0%") {
		t.Error("the page has 0% for what is not known")
	}
}

// TestHostileTextIsText checks that names and messages from the cluster are displayed verbatim,
// even if they contain markup.
func TestHostileTextIsText(t *testing.T) {
	for _, text := range []string{`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, "\u202egpj.exe", strings.Repeat("a", 253), `javascript:alert(1)`, "{{.}}", "'-alert(1)-'"} {
		pool := tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: text}}
		pool.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Reason: text, Message: text}, {Type: tidekeeperv1.ConditionConflicted, Status: metav1.ConditionTrue, Message: text}}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: text, Name: text, Labels: map[string]string{text: text}, CreationTimestamp: metav1.Time{Time: noon.Add(-time.Minute)}}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: text, Message: text}}
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: text, Labels: map[string]string{"topology.kubernetes.io/zone": text}}}
		node.Spec.Taints = []corev1.Taint{{Key: text, Value: text, Effect: corev1.TaintEffectNoSchedule}}
		restart := tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: text, Name: text}}
		restart.Spec.Schedule, restart.Spec.TimeZone, restart.Spec.TargetRef = "0 0 * * *", text, tidekeeperv1.TargetRef{Kind: text, Name: text}
		restart.Status.Conditions = pool.Status.Conditions
		var f fakeKind
		kinds := []Kind{
			f.kind(kindPools, &tidekeeperv1.NodePool{}, &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{pool}}, nil),
			f.kind(kindNodes, &corev1.Node{}, &corev1.NodeList{Items: []corev1.Node{node}}, nil),
			f.kind(kindPods, &corev1.Pod{}, &corev1.PodList{Items: []corev1.Pod{pod}}, nil),
			f.kind(kindRestarts, &tidekeeperv1.ScheduledRestart{}, &tidekeeperv1.ScheduledRestartList{Items: []tidekeeperv1.ScheduledRestart{restart}}, nil),
		}
		for _, name := range restartsKinds[1:] {
			if name == kindPods {
				continue
			}
			kinds = append(kinds, f.kind(name, &corev1.Pod{}, &corev1.PodList{}, nil))
		}
		s := newTestSite(t, nil, kinds...)
		for _, path := range []string{"/", "/capacity", "/restarts", "/pods"} {
			e, err := s.render(t.Context(), path, map[string][]string{"q": {""}, "restart": {text + "/" + text}, "pod": {text + "/" + text}, "cpu": {text}}, patient)
			if err != nil {
				t.Fatalf("%s with %q: %v", path, text, err)
			}
			for _, bad := range []string{"<img", "<script", "onerror=alert(1)>", `href="javascript:`} {
				if strings.Contains(e.HTML, bad) {
					t.Errorf("%s with %q has %q in it", path, text, bad)
				}
			}
		}
	}
}
