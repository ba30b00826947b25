// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"time"

	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// freezeInterval is the interval at which a pool or node that a freeze holds back is reconciled
// even without an event. A single delay until the end of the freeze would miss changes of the
// system clock.
const freezeInterval = time.Minute

// heldBack returns the Freeze in force, or nil if there is none, and the time after which to check
// again. If pods are about to be evicted, the caller passes the function `live`, which reads
// Freezes from the API server. heldBack calls `live` only if the cache, which may be stale, shows
// no Freeze in force.
func heldBack(ctx context.Context, freezes *freeze.Reader, live func(context.Context) (*period.Period, error), now time.Time) (held *period.Period, again time.Duration, err error) {
	if held, err = freezes.Anywhere(ctx); held != nil || err != nil || live == nil {
		again = freezeInterval
	} else if held, err = live(ctx); held != nil {
		// The cache does not show this Freeze yet. If the Freeze is deleted before the cache shows
		// it, no event causes a reconcile. The next check is therefore due soon.
		again = freeze.SharedFor
	}
	if held != nil {
		again = min(again, held.Until.Sub(now))
	}
	return held, again, err
}
