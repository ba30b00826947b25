// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// Patches of one node are limited to a burst, and then to one per interval. That is enough
// for every change that users make, and few enough to do no harm if another client, or
// another pool, reverts each of them.
const (
	WriteBurst    = 20
	WriteInterval = 10 * time.Second
)
