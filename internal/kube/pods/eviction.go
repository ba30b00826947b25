// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import "time"

// maxEvictionRetry is the maximum result of [EvictionRetry].
const maxEvictionRetry = time.Minute

// EvictionRetry returns the delay before a refused eviction is retried. refusedFor is the time
// since the first of the consecutive refusals. The delay is a quarter of that time, but at least
// `first`, and at most one minute.
func EvictionRetry(refusedFor, first time.Duration) time.Duration {
	return min(max(first, refusedFor/4), maxEvictionRetry)
}
