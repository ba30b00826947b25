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
// the window, always the same for the same namespace, name and window, also when
// the object is deleted and made again. A window of less than a second gives 0.
//
// It is the first eight bytes of the SHA-256 of <namespace>/<name>, big-endian,
// modulo the window's seconds. To change that would move every restart of every
// cluster.
func Spread(namespace, name string, window time.Duration) time.Duration {
	return place(namespace+"/"+name, window)
}

// SpreadByUID is the place that earlier versions gave an object, by its UID. A tick
// that was due when such a version was replaced keeps it.
func SpreadByUID(uid string, window time.Duration) time.Duration { return place(uid, window) }

func place(id string, window time.Duration) time.Duration {
	if window < time.Second {
		return 0
	}
	hash := sha256.Sum256([]byte(id))
	offset := binary.BigEndian.Uint64(hash[:8]) % uint64(window/time.Second)
	return time.Duration(offset) * time.Second
}
