// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// WriteBurst is the maximum number of patches of a node in quick succession. After such a burst, a
// node is patched at most once per WriteInterval. The limit is high enough for all changes made by
// users, and low enough to avoid harm if another client or another pool reverts every patch.
const (
	WriteBurst    = 20
	WriteInterval = 10 * time.Second
)
