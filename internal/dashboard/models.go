// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"sync"
	"time"
)

// models are computed or read for the pages of a cluster, and kept until something changes. The
// mutex is held while a page is built.
type models struct {
	mu      sync.Mutex
	lookups *lookups
	rooms   rooms
	// forecasts have a lock of their own.
	forecasts *forecasts
}

func newModels(cluster Cluster, now func() time.Time) *models {
	return &models{lookups: newLookups(cluster), forecasts: newForecasts(now)}
}
