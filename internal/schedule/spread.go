// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Spread returns how long after its ticks an object starts, so that those with
// the same schedule do not all start at once: whole seconds from 0 to less than
// the window, always the same for the same UID and window. A window of less than
// a second gives 0.
//
// It is the first eight bytes of the UID's SHA-256, big-endian, modulo the
// window's seconds. To change that would move every restart of every cluster.
func Spread(uid string, window time.Duration) time.Duration {
	if window < time.Second {
		return 0
	}
	hash := sha256.Sum256([]byte(uid))
	offset := binary.BigEndian.Uint64(hash[:8]) % uint64(window/time.Second)
	return time.Duration(offset) * time.Second
}
