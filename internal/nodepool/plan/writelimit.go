// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// Patches of one node are limited to a burst, and then to one per interval. That is
// enough for all that people do, and little enough that a node does no harm that another
// writer, or another pool, changes back again and again.
const (
	WriteBurst    = 20
	WriteInterval = 10 * time.Second
)
