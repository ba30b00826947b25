// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Digest represents a value in a node's ownership annotation. A short value is its own digest. A
// long value is hashed, so that the ownership annotation leaves space for the node's other
// annotations.
type Digest string

const (
	// hashMark is the first byte of every hashed digest. Annotation values that begin with this
	// byte are hashed even if they are short, so that no value can be mistaken for a hash.
	hashMark = "\x00"
	// maxPlainLength is the maximum length of a value that is its own digest, in bytes.
	maxPlainLength = 128
)

// DigestOf returns the digest of the given value of a setting.
func DigestOf(key setting.Key, value string) Digest {
	if !key.Kind.CanBeLong() || len(value) <= maxPlainLength && !strings.HasPrefix(value, hashMark) {
		return Digest(value)
	}
	hash := sha256.Sum256([]byte(value))
	return Digest(hashMark + base64.RawStdEncoding.EncodeToString(hash[:]))
}
