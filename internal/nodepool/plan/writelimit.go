// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// WriteBurst is the maximum number of consecutive patches of a node; further patches are limited to
// a single patch per WriteInterval. The limit is high enough for all changes made by users, and low
// enough to avoid harm if another client or another pool reverts every patch.
const (
	WriteBurst    = 20
	WriteInterval = 10 * time.Second
)
