// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// ConfirmedFor is the time for which a cached Freeze in force is trusted without checking the API
// server. The check finds Freezes whose deletion event was lost.
const ConfirmedFor = time.Minute

// confirmed holds the result of the last check whether the cached Freezes still exist on the API
// server.
type confirmed struct {
	mu sync.Mutex
	at time.Time
	// there holds the UIDs of the Freezes that existed at the time of the check; gone holds the
	// UIDs of the Freezes that were in the cache but no longer existed.
	there, gone sets.Set[types.UID]
}

// ask reports whether to ask the API server if a cached Freeze still exists. This is the case if
// the Freeze is in force, and its existence has not been checked within the last [ConfirmedFor].
func (c *confirmed) ask(f *tidekeeperv1.Freeze, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return period.Of(f).Contains(now) && !c.gone.Has(f.UID) && (!c.there.Has(f.UID) || now.Sub(c.at).Abs() >= ConfirmedFor)
}

// note records the result of a check whether the cached Freezes still exist. cached is the content
// of the cache before the API server was queried; live is the API server's response.
func (c *confirmed) note(cached, live []tidekeeperv1.Freeze, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.there, c.gone = at, sets.New[types.UID](), sets.New[types.UID]()
	for i := range live {
		c.there.Insert(live[i].UID)
	}
	for i := range cached {
		if !c.there.Has(cached[i].UID) {
			c.gone.Insert(cached[i].UID)
		}
	}
}

// confirm returns the cached Freezes without the Freezes that were deleted from the API server.
// While a Freeze is in force, confirm lists the Freezes on the API server once per minute
// ([ConfirmedFor]). It lists them earlier if a Freeze in force is new in the cache. If the API
// server is unreachable, confirm returns all cached Freezes.
func (r *Reader) confirm(ctx context.Context, cached []tidekeeperv1.Freeze) []tidekeeperv1.Freeze {
	now := r.clock.Now()
	if slices.ContainsFunc(cached, func(f tidekeeperv1.Freeze) bool { return r.confirmed.ask(&f, now) }) {
		// A shared list request that began at exactly this time may be older than a Freeze in the
		// cache, so share only a later request.
		live, err := r.live.list(ctx, r.apiReader, now.Add(1), r.clock)
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("Cannot confirm that the Freezes in force still exist", "error", err.Error())
			return cached
		}
		r.confirmed.note(cached, live, now)
	}
	return slices.DeleteFunc(cached, func(f tidekeeperv1.Freeze) bool { return r.confirmed.isGone(f.UID) })
}

func (c *confirmed) isGone(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone.Has(uid)
}
