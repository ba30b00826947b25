// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import "time"

// maxEvictionRetry is the maximum result of [EvictionRetry].
const maxEvictionRetry = time.Minute

// EvictionRetry returns the delay before an eviction that was refused is tried again. refusedFor is
// the time for which evictions have been refused one after the other. The delay is a quarter of it,
// but at least first, and at most a minute.
func EvictionRetry(refusedFor, first time.Duration) time.Duration {
	return min(max(first, refusedFor/4), maxEvictionRetry)
}
