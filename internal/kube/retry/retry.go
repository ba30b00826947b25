// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retry determines when a controller retries a request after a failure or a conflict.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// After a failure, the first retry is delayed by firstDelay; the delay doubles with each further
// failure, up to maxDelay. controller-runtime's default maximum is about a quarter of an hour. With
// that maximum, nothing would happen for up to a quarter of an hour after a long outage of the API
// server, and a restart could miss its deadline.
const (
	firstDelay = 5 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// Limiter returns the rate limiter that delays a controller's retries after failures.
func Limiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstDelay, maxDelay)
}
