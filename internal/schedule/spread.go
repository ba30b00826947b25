// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Spread returns the delay between the ticks of an object and its starts, so that objects with
// the same schedule do not all start at once: a whole number of seconds, at least 0 and less
// than the spread. The delay is always the same for the same namespace, name and spread, even
// when the object is deleted and created again. For a spread of less than a second the delay is
// 0.
//
// The delay is the first eight bytes of the SHA-256 of <namespace>/<name>, big-endian, modulo
// the spread's seconds. A change of this formula would move every restart in every cluster.
func Spread(namespace, name string, spread time.Duration) time.Duration {
	return place(namespace+"/"+name, spread)
}

// SpreadByUID is the delay that earlier versions derived from an object's UID. A tick that was
// due when such a version was replaced keeps that delay.
func SpreadByUID(uid string, spread time.Duration) time.Duration { return place(uid, spread) }

func place(id string, spread time.Duration) time.Duration {
	if spread < time.Second {
		return 0
	}
	hash := sha256.Sum256([]byte(id))
	offset := binary.BigEndian.Uint64(hash[:8]) % uint64(spread/time.Second)
	return time.Duration(offset) * time.Second
}
