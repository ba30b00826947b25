// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retry decides when a controller retries after a failure.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The delays double from firstDelay to maxDelay. controller-runtime's default maximum is a
// quarter of an hour: after an outage of an hour, nothing would happen for that long once the
// API server is back, and a restart could miss its deadline.
const (
	firstDelay = 5 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// Limiter returns the rate limiter for a controller's queue.
func Limiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstDelay, maxDelay)
}
