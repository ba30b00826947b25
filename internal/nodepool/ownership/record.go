// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership reads and writes the ownership record: the annotation on a node that lists
// the settings each pool has put there.
package ownership

import (
	"encoding/json"
	"fmt"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Record maps names of pools to the settings that they have put on a node. It is written in the
// same patch as the settings themselves, so that neither exists without the other.
type Record map[string]Settings

// Settings are the settings that a pool has put on a node, with their digests.
type Settings map[setting.Key]Digest

// Parse reads a record from the annotation. The annotation may contain anything, because every
// client that may edit nodes can write it. After an error, the ownership is unknown.
func Parse(text string) (Record, error) {
	if text == "" {
		return Record{}, nil
	}
	var stored map[string]setting.Stored
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("read the ownership record: %w", err)
	}
	r := Record{}
	for pool, s := range stored {
		for _, kind := range setting.Kinds() {
			for name, value := range *s.Values(kind) {
				r.Add(pool, setting.Key{Kind: kind, Name: name}, value)
			}
			if hashes := s.HashesOf(kind); hashes != nil {
				for name, hash := range *hashes {
					r.Put(pool, setting.Key{Kind: kind, Name: name}, hashMark+Digest(hash))
				}
			}
		}
	}
	return r, nil
}

// String returns the text of the annotation: JSON with sorted keys, so that equal records
// have equal texts, or "" for an empty record.
func (r Record) String() string {
	stored := map[string]setting.Stored{}
	for pool, settings := range r {
		if len(settings) == 0 {
			continue
		}
		var s setting.Stored
		for key, digest := range settings {
			values, text := s.Values(key.Kind), string(digest)
			if hash, hashed := strings.CutPrefix(text, hashMark); hashed && key.Kind.CanBeLong() {
				values, text = s.HashesOf(key.Kind), hash
			}
			if *values == nil {
				*values = map[string]string{}
			}
			(*values)[key.Name] = text
		}
		stored[pool] = s
	}
	if len(stored) == 0 {
		return ""
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // An escaped character takes six bytes instead of a single byte.
	if err := encoder.Encode(stored); err != nil {
		panic("a map of strings is always JSON: " + err.Error())
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Add records that the pool has put a value on the node.
func (r Record) Add(pool string, key setting.Key, value string) {
	r.Put(pool, key, DigestOf(key, value))
}

// Put records that the pool has put the value with this digest on the node.
func (r Record) Put(pool string, key setting.Key, digest Digest) {
	if r[pool] == nil {
		r[pool] = Settings{}
	}
	r[pool][key] = digest
}

// Owns reports whether, according to the record, a pool has put this value on the node. Any
// other value was written by another client.
func (r Record) Owns(key setting.Key, value string) bool {
	for _, settings := range r {
		if recorded, ok := settings[key]; ok && recorded == DigestOf(key, value) {
			return true
		}
	}
	return false
}
