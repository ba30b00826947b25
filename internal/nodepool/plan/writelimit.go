// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// Patches of a node are limited to a burst, and then to one patch per interval. The limit is
// high enough for all changes that users make, and low enough to do no harm if another client,
// or another pool, reverts each patch.
const (
	WriteBurst    = 20
	WriteInterval = 10 * time.Second
)
