// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

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

// refusalPatience is how long an API server that has answered may refuse: one
// that is starting knows nobody's rights yet.
const refusalPatience = 30 * time.Second

// connection lists and watches, and goes on when the API server cannot be
// reached. An informer would too, but waits up to a minute between two tries,
// and tells nobody.
type connection struct {
	source cache.ListerWatcherWithContext
	// lost is called once when the API server cannot be reached any more, and
	// regained when it can. stop is called if there is no point in going on.
	lost     func(error)
	regained func()
	stop     func(error)

	mu        sync.Mutex
	connected bool
	since     time.Time // the first failure since it was connected, else zero
}

func (c *connection) listerWatcher() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return try(ctx, c, func() (runtime.Object, error) { return c.source.ListWithContext(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return try(ctx, c, func() (watch.Interface, error) { return c.source.WatchWithContext(ctx, options) })
		},
	}
}

// try asks until there is an answer that the informer knows what to do about.
func try[T any](ctx context.Context, c *connection, ask func() (T, error)) (T, error) {
	pause := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 5 * time.Second}
	for {
		answer, err := ask()
		if err == nil {
			c.succeeded()
			return answer, nil
		}
		if ctx.Err() != nil || !c.goOn(err) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(pause.Step()):
		}
	}
}

func (c *connection) succeeded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connected && !c.since.IsZero() {
		c.regained()
	}
	c.connected, c.since = true, time.Time{}
}

// goOn tells whether to ask again after an error.
func (c *connection) goOn(err error) bool {
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	if !refused && !unreachable(err) {
		return false // such as that the list is too old: the informer's
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		c.since = time.Now()
		if c.connected {
			c.lost(err)
		}
	}
	if refused && (!c.connected || time.Since(c.since) > refusalPatience) {
		c.stop(err)
		return false
	}
	return true
}

// unreachable tells whether there was no answer, or one that says that there is
// none for now.
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
