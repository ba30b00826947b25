// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retry says when a controller tries again what has failed.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The waits double from the first to the last. By default the last is a quarter
// of an hour: after an outage of an hour that is for how long nothing would happen
// once the API server is back, and a restart could miss its deadline by it.
const (
	firstDelay = 5 * time.Millisecond
	lastDelay  = 30 * time.Second
)

// Limiter returns the rate limiter for a controller's queue.
func Limiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstDelay, lastDelay)
}
