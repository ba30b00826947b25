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

// Annotation is the content of a node's ownership annotation. It is shared and must not be modified.
type Annotation struct {
	Record Record
	Closed Closed
	// Err is set if the annotation cannot be parsed, so that the ownership is unknown. Record and
	// Closed are nil then.
	Err error
}

// Parse returns the record in the value of the ownership annotation. An error means that the
// ownership is unknown.
func Parse(text string) (Record, error) {
	a := Read(text)
	return a.Record, a.Err
}

// Read parses the value of the ownership annotation. The value may be arbitrary, because any client
// that may edit nodes can write it.
func Read(text string) Annotation {
	if text == "" {
		return Annotation{Record: Record{}}
	}
	var stored map[string]setting.Stored
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return Annotation{Err: fmt.Errorf("read the ownership record: %w", err)}
	}
	r, closed := Record{}, Closed(nil)
	for pool, s := range stored {
		times := closedOf(&s)
		if len(times) > 0 {
			r[pool] = Settings{}
		}
		for key, since := range times {
			closed = closed.With(pool, key, since)
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
	return Annotation{Record: r, Closed: closed}
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

// MaxLength returns a length, in bytes, that [Record.Text] does not exceed. To compute it costs less
// than the text.
func (r Record) MaxLength(closed Closed) int {
	const (
		escaped = 6   // bytes of an escaped byte, as in \u0000
		syntax  = 8   // the quotation marks, colon and comma of an entry, or the braces around all
		fields  = 100 // the names and braces of all fields of a pool
		time    = 32  // a time in the format RFC 3339
	)
	length := syntax
	for pool, settings := range r {
		length += escaped*len(pool) + fields + syntax
		for key, digest := range settings {
			length += escaped*(len(key.Name)+len(digest)) + syntax
		}
	}
	for pool, since := range closed {
		length += escaped*len(pool) + fields + syntax
		for key := range since {
			length += escaped*len(key) + time + syntax
		}
	}
	return length
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
