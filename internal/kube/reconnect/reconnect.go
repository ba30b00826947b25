// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconnect keeps the watch of a command-line program running while the API server is
// unreachable or temporarily rejects requests.
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

// maxRefusal is the time for which rejected requests are retried if the API server has accepted a
// request before. A starting API server rejects valid requests while its authorization rules and
// API groups are incomplete.
const maxRefusal = 30 * time.Second

// longestPause is the maximum time between two attempts, without jitter. It limits the time until
// the end of an outage is noticed.
const longestPause = 2 * time.Second

// Connection sends list and watch requests, and retries them while the API server is unreachable.
// An informer retries, too, but waits up to a minute between two attempts and does not report the
// outage.
type Connection struct {
	Source cache.ListerWatcherWithContext
	// OnLost is called when a connected API server becomes unreachable or starts to reject
	// requests. OnRegained is called when it accepts requests again. Stop is called when a rejected
	// request is not retried: because no request was accepted before, or because requests have been
	// rejected for maxRefusal.
	OnLost     func(error)
	OnRegained func()
	Stop       func(error)

	mu           sync.Mutex
	connected    bool      // true once the API server has accepted a request
	lost         bool      // true between OnLost and OnRegained
	refusedSince time.Time // time of the first of the current rejections; zero if the last request was not rejected
}

// ListerWatcher returns a ListWatch for an informer. It retries failed requests.
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

// retry calls `ask` until it succeeds, it fails with an error that must not be retried, or the
// context ends.
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

// shouldRetry reports whether to retry the request after an error, and calls OnLost or Stop if
// necessary.
func (c *Connection) shouldRetry(err error) bool {
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
	if !refused && !unreachable(err) {
		return false // The informer itself handles other errors, such as an expired list.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connected && !c.lost {
		c.lost = true
		c.OnLost(err)
	}
	if !refused {
		// Rejections are tolerated again for maxRefusal after an outage, because a starting API
		// server rejects requests.
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

// unreachable reports whether the error means that the API server did not respond, or that it
// currently cannot serve requests.
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
