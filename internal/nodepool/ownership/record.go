// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership reads and writes a node's ownership record, which is an annotation that lists
// the settings applied to the node by each pool.
//
//	record.go  the settings in the record
//	digest.go  the hashes that replace long values in the record
//	closed.go  the NoExecute taints for which the node is being emptied, and their times
package ownership

import (
	"encoding/json"
	"fmt"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Record is the content of a node's ownership annotation, apart from [Closed]. It maps pool names
// to the settings that the pools have applied to the node. The annotation is written in the same
// patch as the settings, so that neither can exist without the other. The entry of a pool is empty
// if the pool has closed the node to new pods but has applied no settings.
type Record map[string]Settings

// Settings maps the keys of a pool's settings on a node to the digests of their values.
type Settings map[setting.Key]Digest

// Parse parses the value of the ownership annotation. The value may be arbitrary, because any
// client that may edit nodes can write it. An error means that the ownership is unknown.
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
		if len(closedOf(&s)) > 0 {
			r[pool] = Settings{}
		}
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

// String returns the value of the ownership annotation for a node that no pool has closed to new
// pods.
func (r Record) String() string { return r.Text(nil) }

// Text returns the value of the ownership annotation as JSON with sorted keys, so that equal
// records result in equal strings. It returns "" if no pool has applied settings to the node or
// closed it to new pods.
func (r Record) Text(closed Closed) string {
	stored := map[string]setting.Stored{}
	for pool, since := range closed {
		if len(since) > 0 {
			stored[pool] = setting.Stored{Closed: storedTimes(since)}
		}
	}
	for pool, settings := range r {
		if len(settings) == 0 {
			continue
		}
		s := stored[pool]
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
	encoder.SetEscapeHTML(false) // Each HTML-escaped character would take up six bytes.
	if err := encoder.Encode(stored); err != nil {
		panic("a map of strings is always JSON: " + err.Error())
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Add records that the pool has set the key to the given value.
func (r Record) Add(pool string, key setting.Key, value string) {
	r.Put(pool, key, DigestOf(key, value))
}

// Put records that the pool has set the key to the value with the given digest.
func (r Record) Put(pool string, key setting.Key, digest Digest) {
	if r[pool] == nil {
		r[pool] = Settings{}
	}
	r[pool][key] = digest
}

// Owns reports whether, according to the record, any pool has set the key to the given value. A
// value without an owner was written by another client.
func (r Record) Owns(key setting.Key, value string) bool {
	for _, settings := range r {
		if recorded, ok := settings[key]; ok && recorded == DigestOf(key, value) {
			return true
		}
	}
	return false
}
