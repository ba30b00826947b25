// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"time"

	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// freezeInterval is the interval at which a pool or a node held back by a freeze is reconciled even
// without an event. A single delay until the end of the freeze would miss changes of the system
// clock.
const freezeInterval = time.Minute

// heldBack returns the freeze in force, or nil if there is none, and the time after which to check
// again. If live is set, because pods are about to be evicted, it also queries the API server in
// addition to the cache.
func heldBack(ctx context.Context, freezes *freeze.Reader, live func(context.Context) (*period.Period, error), now time.Time) (held *period.Period, again time.Duration, err error) {
	if held, err = freezes.Anywhere(ctx); held != nil || err != nil || live == nil {
		again = freezeInterval
	} else if held, err = live(ctx); held != nil {
		// If the freeze is lifted before the cache shows it, no event follows. The next check is
		// therefore due soon.
		again = freeze.SharedFor
	}
	if held != nil {
		again = min(again, held.Until.Sub(now))
	}
	return held, again, err
}
