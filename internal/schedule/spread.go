// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Spread returns the delay between an object's ticks and the starts of its restarts, so that
// objects with the same schedule do not all start at the same time. It is a whole number of
// seconds, at least 0 and less than spread. The delay depends only on the namespace, the name and
// the spread, so it remains the same when the object is deleted and created again. For a spread of
// less than a second the delay is 0.
//
// The delay is the first eight bytes of the SHA-256 of <namespace>/<name>, big-endian, modulo the
// number of seconds of the spread. A change of this formula would move every restart in every
// cluster.
func Spread(namespace, name string, spread time.Duration) time.Duration {
	return place(namespace+"/"+name, spread)
}

// SpreadByUID returns the delay that earlier versions of the manager derived from an object's UID.
// A tick that was due when the manager was upgraded from such a version keeps that delay.
func SpreadByUID(uid string, spread time.Duration) time.Duration { return place(uid, spread) }

func place(id string, spread time.Duration) time.Duration {
	if spread < time.Second {
		return 0
	}
	hash := sha256.Sum256([]byte(id))
	offset := binary.BigEndian.Uint64(hash[:8]) % uint64(spread/time.Second)
	return time.Duration(offset) * time.Second
}
