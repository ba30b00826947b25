// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

const (
	// SharedFor is how long a list from the API server answers further questions: of a
	// thousand restarts that are due at once, one asks.
	SharedFor = time.Second
	// listTimeout bounds how long they wait for it.
	listTimeout = 10 * time.Second
)

// shared is the last list of freezes from the API server.
type shared struct {
	mu   sync.Mutex
	last *liveList
}

// liveList is a list that was begun at a time. done is closed when the rest is filled in.
type liveList struct {
	begun time.Time
	done  chan struct{}
	items []tidekeeperv1.Freeze
	err   error
}

// list returns the freezes as the API server had them at the given time or later, and not
// longer than SharedFor ago.
func (s *shared) list(ctx context.Context, reader client.Reader, notBefore time.Time, c clock.PassiveClock) ([]tidekeeperv1.Freeze, error) {
	s.mu.Lock()
	now := c.Now()
	l := s.last
	isNew := l == nil || l.begun.Before(notBefore) || now.Sub(l.begun).Abs() >= SharedFor
	if isNew {
		l = &liveList{begun: now, done: make(chan struct{})}
		s.last = l
	}
	s.mu.Unlock()
	if isNew {
		// Others wait for it, whatever becomes of this reconcile.
		s.fill(context.WithoutCancel(ctx), reader, l)
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.done:
		return l.items, l.err
	}
}

func (s *shared) fill(ctx context.Context, reader client.Reader, l *liveList) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	defer close(l.done)
	list := &tidekeeperv1.FreezeList{}
	if err := reader.List(ctx, list); err == nil {
		l.items = list.Items
	} else if !apierrors.IsNotFound(err) { // Without their CRD there are none.
		l.err = fmt.Errorf("list freezes: %w", err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.last == l {
			s.last = nil
		}
	}
}
