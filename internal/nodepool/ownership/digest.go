// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Digest represents a value in a record. A short value is its own digest; a long value is
// hashed, so that the record leaves space for the annotations themselves.
type Digest string

const (
	// hashMark is the first byte of a digest that is a hash.
	hashMark = "\x00"
	// maxPlainLength is the length up to which a value is its own digest.
	maxPlainLength = 128
)

// DigestOf returns the digest of a value of the setting.
func DigestOf(key setting.Key, value string) Digest {
	if !key.Kind.CanBeLong() || len(value) <= maxPlainLength && !strings.HasPrefix(value, hashMark) {
		return Digest(value)
	}
	hash := sha256.Sum256([]byte(value))
	return Digest(hashMark + base64.RawStdEncoding.EncodeToString(hash[:]))
}
