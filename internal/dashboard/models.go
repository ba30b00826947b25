// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"sync"
	"time"
)

// models caches values computed from a cluster's objects until the objects change. Its mutex is the
// lock of the pages, which is held while a page is being built.
type models struct {
	mu      sync.Mutex
	lookups *lookups
	rooms   rooms
	// forecasts has a separate lock, so that a long computation does not block pages.
	forecasts *forecasts
}

func newModels(cluster Cluster, now func() time.Time) *models {
	return &models{lookups: newLookups(cluster), forecasts: newForecasts(now)}
}
