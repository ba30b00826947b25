// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

func TestMain(m *testing.M) {
	// client-go's own error log would wait for the clock outside of the synctest bubbles.
	utilruntime.ErrorHandlers = nil //nolint:reassign // client-go has no other way to set the handlers
	os.Exit(m.Run())
}

// source is a fake API server whose requests can be made to fail.
type source struct {
	*cachetesting.FakeControllerSource
	typed func(*corev1.List) runtime.Object
	mu    sync.Mutex
	fault error
	// events is the server of the events. It is nil if the watcher does not watch events.
	events *eventSource
}

func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

func (s *source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

func (s *source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	list, err := s.FakeControllerSource.List(options)
	if err != nil {
		return nil, err
	}
	return s.typed(list.(*corev1.List)), nil
}

// podList converts a list from client-go's fake source to a PodList, which a real client returns.
func podList(list *corev1.List) runtime.Object {
	pods := &corev1.PodList{ListMeta: list.ListMeta}
	for _, item := range list.Items {
		pods.Items = append(pods.Items, *item.Object.(*corev1.Pod))
	}
	return pods
}

func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.FakeControllerSource.Watch(options)
}

// collector collects the reported transitions, formatted as lines.
type collector struct {
	mu    sync.Mutex
	lines []string
	fault func(t Transition) error
}

func (r *collector) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *collector) report(t Transition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != nil {
		if err := r.fault(t); err != nil {
			return err
		}
	}
	r.lines = append(r.lines, t.Pod+": "+describe(t))
	return nil
}

// take returns the lines that were collected since the last call of take.
func (r *collector) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

// watching runs a watcher in a new synctest bubble, which fails the test if a goroutine is left
// over.
func watching(t *testing.T, w *Watcher, there []*corev1.Pod, test func(s *source, got *collector, result chan error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &source{FakeControllerSource: cachetesting.NewFakeControllerSource(), typed: podList}
		defer s.Shutdown()
		for _, pod := range there {
			s.Add(pod)
		}
		if events, wanted := w.Events.(*eventSource); wanted {
			// The fake source must be created inside of the bubble.
			events.source = &source{FakeControllerSource: cachetesting.NewFakeControllerSource(), typed: eventList, fault: events.refusal}
			defer events.Shutdown()
			for _, e := range events.there {
				events.Add(e)
			}
			s.events = events
		}
		got := &collector{}
		w.Source, w.OnTransition = s, got.report
		w.OnStart = func(pods, unready int) { got.note(fmt.Sprintf("began with %d, %d not ready", pods, unready)) }
		w.OnLost = func(err error) { got.note("lost: " + err.Error()) }
		w.OnRegained = func() { got.note("regained") }
		w.OnDropped = func(key string, transitions int, err error) {
			got.note(fmt.Sprintf("dropped %d of %s: %v", transitions, key, err))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- w.Run(ctx) }()
		settle()
		test(s, got, result)
		cancel()
		if err := <-result; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// settle waits until all goroutines of the bubble are idle.
func settle() {
	time.Sleep(time.Second) // sleep: in a bubble
	synctest.Wait()
}

func want(t *testing.T, got *collector, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(lines, got.take()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func named(name string, changes ...change) *corev1.Pod {
	p := pod(changes...)
	p.Name = name
	return p
}

func TestWatch(t *testing.T) {
	there := []*corev1.Pod{pod(phase(corev1.PodRunning), yes(corev1.PodReady, 1))}
	watching(t, &Watcher{}, there, func(s *source, got *collector, _ chan error) {
		lines := got.take()
		slices.Sort(lines)
		if diff := cmp.Diff([]string{"began with 1, 0 not ready", "web: ? Found"}, lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.Add(named("db"))
		settle()
		want(t, got, "db: 0 Created", "db: ? Phase >Pending")
		// If a pod changes rapidly, each of its states is reported, in order.
		s.Modify(named("db", yes(corev1.PodScheduled, 1)))
		s.Modify(named("db", yes(corev1.PodScheduled, 1), no(corev1.PodReady, 2, "ContainersNotReady")))
		s.Modify(named("db", yes(corev1.PodScheduled, 1), yes(corev1.PodReady, 2)))
		s.Modify(named("db", yes(corev1.PodScheduled, 1), no(corev1.PodReady, 2, "ContainersNotReady")))
		settle()
		want(t, got, "db: 1 Condition PodScheduled >True", "db: 2 Condition Ready >False ContainersNotReady",
			"db: 2 Condition Ready False>True", "db: 2 Condition Ready True>False ContainersNotReady")
		s.Delete(named("db"))
		settle()
		want(t, got, "db: ? Deleted")
		s.Add(named("db"))
		settle()
		want(t, got, "db: 0 Created", "db: ? Phase >Pending")
	})
}

func TestWatchHistoryAndNames(t *testing.T) {
	there := []*corev1.Pod{named("db", yes(corev1.PodScheduled, 1)), named("other")}
	watching(t, &Watcher{History: true, Names: map[string]bool{"db": true}}, there, func(s *source, got *collector, _ chan error) {
		lines := slices.DeleteFunc(got.take(), func(line string) bool { return line == "began with 1, 1 not ready" })
		if diff := cmp.Diff([]string{"db: 0 Created", "db: ? Phase >Pending", "db: 1 Condition PodScheduled >True"}, lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.Modify(named("other", phase(corev1.PodRunning)))
		settle()
		want(t, got)
	})
}

// TestWatchContinuesAfterALostConnection checks that the transitions during a lost connection are
// reported as far as the pods show them, and that no earlier transition is reported again.
func TestWatchContinuesAfterALostConnection(t *testing.T) {
	there := []*corev1.Pod{named("db", yes(corev1.PodScheduled, 1)), named("gone"), named("new", yes(corev1.PodScheduled, 1))}
	watching(t, &Watcher{}, there, func(s *source, got *collector, _ chan error) {
		got.take()
		s.fail(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
		s.ResetWatch()
		settle()
		want(t, got, "lost: dial: connection refused")
		s.ModifyDropWatch(named("db", yes(corev1.PodScheduled, 1), no(corev1.PodReady, 2, "ContainersNotReady")))
		s.ModifyDropWatch(named("db", yes(corev1.PodScheduled, 1), yes(corev1.PodInitialized, 3), yes(corev1.PodReady, 9)))
		s.DeleteDropWatch(named("gone"))
		s.DeleteDropWatch(named("new", yes(corev1.PodScheduled, 1)))
		anew := named("new")
		anew.UID = "another"
		s.AddDropWatch(anew)
		time.Sleep(time.Minute) // sleep: in a bubble
		s.fail(nil)
		time.Sleep(time.Minute) // sleep: in a bubble
		settle()
		lines := got.take()
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[:2], b[:2]) })
		if diff := cmp.Diff([]string{
			"db: 3 Condition Initialized >True", "db: 9 Condition Ready >True",
			"gone: ? Deleted",
			"new: ? Deleted", "new: 0 Created", "new: ? Phase >Pending",
			"regained",
		}, lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestThreeMoreTriesAndADrop checks that a transition that cannot be reported is retried three
// times, after which the pod's pending transitions are dropped and counted. Transitions that were
// reported must not be repeated, and the pod's next change must be reported.
func TestThreeMoreTriesAndADrop(t *testing.T) {
	watching(t, &Watcher{}, []*corev1.Pod{named("db")}, func(s *source, got *collector, _ chan error) {
		got.take()
		tries := 0
		failing := func(t Transition) error {
			if t.Pod == "db" && t.Name == string(corev1.PodReady) {
				tries++
				return errors.New("no space left")
			}
			return nil
		}
		got.mu.Lock()
		got.fault = failing
		got.mu.Unlock()
		s.Modify(named("db", yes(corev1.PodScheduled, 1), no(corev1.PodReady, 1, "R")))
		s.Modify(named("db", yes(corev1.PodScheduled, 1), yes(corev1.PodReady, 2)))
		time.Sleep(time.Minute) // sleep: in a bubble
		synctest.Wait()
		want(t, got, "db: 1 Condition PodScheduled >True", "dropped 2 of shop/db: no space left")
		if tries != 4 {
			t.Errorf("%d tries, want 4", tries)
		}
		// After a drop, the key is retried three times again.
		s.Modify(named("db", yes(corev1.PodScheduled, 1), no(corev1.PodReady, 3, "R")))
		time.Sleep(time.Minute) // sleep: in a bubble
		synctest.Wait()
		want(t, got, "dropped 1 of shop/db: no space left")
		if tries != 8 {
			t.Errorf("%d tries, want 8", tries)
		}
		got.mu.Lock()
		got.fault = nil
		got.mu.Unlock()
		time.Sleep(time.Minute) // sleep: in a bubble
		synctest.Wait()
		want(t, got)
		s.Modify(named("db", yes(corev1.PodScheduled, 1), yes(corev1.PodReady, 4)))
		settle()
		want(t, got, "db: 4 Condition Ready False>True")
	})
}

// TestATryThatSucceedsIsTheLast checks that a transition is not reported again after a successful
// retry.
func TestATryThatSucceedsIsTheLast(t *testing.T) {
	watching(t, &Watcher{}, []*corev1.Pod{named("db")}, func(s *source, got *collector, _ chan error) {
		got.take()
		failures := 3
		got.mu.Lock()
		got.fault = func(Transition) error {
			if failures--; failures >= 0 {
				return errors.New("busy")
			}
			return nil
		}
		got.mu.Unlock()
		s.Modify(named("db", yes(corev1.PodScheduled, 1)))
		time.Sleep(time.Minute) // sleep: in a bubble
		synctest.Wait()
		want(t, got, "db: 1 Condition PodScheduled >True")
	})
}

// TestRefusals checks that the watcher ends if it has no right to watch, but not if the API server
// rejects requests only for a short time, as it may after it has started.
func TestRefusals(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
	synctest.Test(t, func(t *testing.T) {
		s := &source{FakeControllerSource: cachetesting.NewFakeControllerSource(), typed: podList, fault: forbidden}
		defer s.Shutdown()
		w := &Watcher{Source: s, OnStart: func(int, int) { t.Error("it began") }}
		begin := time.Now()
		if err := w.Run(t.Context()); !apierrors.IsForbidden(err) || time.Since(begin) > 2*time.Second {
			t.Errorf("it ends with %v after %s", err, time.Since(begin))
		}
	})
	watching(t, &Watcher{}, nil, func(s *source, got *collector, result chan error) {
		want(t, got, "began with 0, 0 not ready")
		s.fail(forbidden)
		s.ResetWatch()
		time.Sleep(20 * time.Second) // sleep: in a bubble
		s.fail(nil)
		time.Sleep(20 * time.Second) // sleep: in a bubble
		want(t, got, "lost: "+forbidden.Error(), "regained")
		s.fail(forbidden)
		s.ResetWatch()
		time.Sleep(2 * time.Minute) // sleep: in a bubble
		synctest.Wait()
		select {
		case err := <-result:
			if !apierrors.IsForbidden(err) {
				t.Errorf("it ends with %v", err)
			}
			result <- nil
		default:
			t.Error("it goes on although it is refused for minutes")
		}
	})
}

// TestWhatWasReadIsToldBeforeTheEnd checks that all observed transitions are reported before Run
// returns.
func TestWhatWasReadIsToldBeforeTheEnd(t *testing.T) {
	const pods = 50
	var there []*corev1.Pod
	for i := range pods {
		there = append(there, named(fmt.Sprint("pod-", i)))
	}
	synctest.Test(t, func(t *testing.T) {
		s := &source{FakeControllerSource: cachetesting.NewFakeControllerSource(), typed: podList}
		defer s.Shutdown()
		for _, pod := range there {
			s.Add(pod)
		}
		got := &collector{}
		ctx, cancel := context.WithCancel(t.Context())
		w := &Watcher{Source: s, OnStart: func(int, int) { cancel() }, OnTransition: func(t Transition) error {
			time.Sleep(time.Second) // sleep: in a bubble, for a slow reader
			return got.report(t)
		}}
		if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
		if got := len(got.take()); got != pods {
			t.Errorf("%d lines, want %d", got, pods)
		}
	})
}
