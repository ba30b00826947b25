// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconnect keeps a user's watch running while the API server is unreachable, or
// refuses requests for a while.
package reconnect

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// maxRefusal is the time for which an API server that has answered before may refuse requests:
// during its start, it does not know all rights and kinds yet.
const maxRefusal = 30 * time.Second

// longestPause is the longest time between two attempts, but for its jitter: an API server that is back is
// noticed after that.
const longestPause = 2 * time.Second

// Connection lists and watches, and retries while the API server is unreachable. An informer
// does so, too, but waits up to a minute between two attempts, and reports nothing.
type Connection struct {
	Source cache.ListerWatcherWithContext
	// OnLost is called once when the API server becomes unreachable, and OnRegained when it is
	// reachable again. Stop is called if a retry would be pointless.
	OnLost     func(error)
	OnRegained func()
	Stop       func(error)

	mu           sync.Mutex
	connected    bool      // the API server has answered at least once
	lost         bool      // OnLost was called, and OnRegained was not
	refusedSince time.Time // start of the refusals; zero if the last answer was not a refusal
}

// ListerWatcher returns a ListWatch for an informer.
func (c *Connection) ListerWatcher() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return retry(ctx, c, func() (runtime.Object, error) { return c.Source.ListWithContext(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return retry(ctx, c, func() (watch.Interface, error) { return c.Source.WatchWithContext(ctx, options) })
		},
	}
}

// retry calls ask until the informer can handle the result.
func retry[T any](ctx context.Context, c *Connection, ask func() (T, error)) (T, error) {
	pause := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5, Cap: longestPause}
	for {
		answer, err := ask()
		if err == nil {
			c.succeeded()
			return answer, nil
		}
		if ctx.Err() != nil || !c.shouldRetry(err) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(pause.Step()):
		}
	}
}

func (c *Connection) succeeded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost {
		c.OnRegained()
	}
	c.connected, c.lost, c.refusedSince = true, false, time.Time{}
}

// shouldRetry reports whether to ask again after an error.
func (c *Connection) shouldRetry(err error) bool {
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
	if !refused && !unreachable(err) {
		return false // For example an expired list, which the informer handles.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connected && !c.lost {
		c.lost = true
		c.OnLost(err)
	}
	if !refused {
		// The time of an outage does not count as a refusal.
		c.refusedSince = time.Time{}
		return true
	}
	if c.refusedSince.IsZero() {
		c.refusedSince = time.Now()
	}
	if !c.connected || time.Since(c.refusedSince) > maxRefusal {
		c.Stop(err)
		return false
	}
	return true
}

// unreachable reports whether the API server did not answer, or answered that it cannot serve
// at the moment.
func unreachable(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return false
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}
