// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"sync"
	"time"
)

// models caches computed models and lookups for the pages of a cluster until objects change. The mutex is
// held while a page is built.
type models struct {
	mu      sync.Mutex
	lookups *lookups
	rooms   rooms
	// forecasts has its own lock.
	forecasts *forecasts
}

func newModels(cluster Cluster, now func() time.Time) *models {
	return &models{lookups: newLookups(cluster), forecasts: newForecasts(now)}
}
