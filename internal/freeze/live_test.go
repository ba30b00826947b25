// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

var noon = time.Date(2026, time.December, 23, 12, 0, 0, 0, time.UTC)

// server is a reader that counts its list calls, and returns a different number of Freezes each
// time.
type server struct {
	client.Reader
	lists atomic.Int32
	err   error
	block chan struct{}
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	n := s.lists.Add(1)
	if s.block != nil {
		<-s.block
	}
	if s.err != nil {
		return s.err
	}
	// The nth list call returns n Freezes, so that callers can tell the lists apart.
	list.(*tidekeeperv1.FreezeList).Items = make([]tidekeeperv1.Freeze, n)
	return nil
}

func TestSharedList(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	s, from := &shared{}, &server{}
	ask := func(what string, notBefore time.Time, lists int32) {
		t.Helper()
		items, err := s.list(t.Context(), from, notBefore, c)
		if got := from.lists.Load(); err != nil || got != lists || len(items) != int(lists) {
			t.Errorf("%s: %d lists, answered by number %d: %v; want %d", what, got, len(items), err, lists)
		}
	}
	ask("at first", noon, 1)
	ask("at the same time", noon, 1)
	c.SetTime(noon.Add(999 * time.Millisecond))
	ask("less than a second later", noon, 1)
	ask("but due since", noon.Add(500*time.Millisecond), 2)
	c.SetTime(noon.Add(2 * time.Second))
	ask("later", noon, 3)
	c.SetTime(noon.Add(-time.Hour))
	ask("after the clock was set back", noon.Add(-2*time.Hour), 4)

	from.err = errors.New("not now")
	c.SetTime(noon.Add(10 * time.Second))
	if _, err := s.list(t.Context(), from, noon, c); !errors.Is(err, from.err) {
		t.Errorf("an error of the API server: %v", err)
	}
	from.err = nil
	ask("an error is not shared with what comes later", noon, 6)
}

// TestSharedListOfMany checks that a thousand concurrent callers share a single list call.
func TestSharedListOfMany(t *testing.T) {
	s, from := &shared{}, &server{block: make(chan struct{})}
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if _, err := s.list(t.Context(), from, noon, clocktesting.NewFakePassiveClock(noon)); err != nil {
				t.Error(err)
			}
		})
	}
	close(from.block)
	all.Wait()
	if got := from.lists.Load(); got != 1 {
		t.Errorf("%d lists, want 1", got)
	}
}

func freezeUntil(hours int) *tidekeeperv1.Freeze {
	return &tidekeeperv1.Freeze{
		ObjectMeta: metav1.ObjectMeta{Name: "f", Generation: 1, CreationTimestamp: metav1.Time{Time: noon}},
		Spec:       tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: noon.Add(time.Duration(hours) * time.Hour)}, Reason: "r"},
	}
}
