// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podconfig

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"
)

// Prefixes of content hashes. A prefix identifies the covered kinds of objects and the version of
// the hash format. Hashes with different prefixes must not be compared.
const (
	ofConfigMaps = "c1-"
	ofBoth       = "s1-"
)

// Scope returns the uses that a content hash covers. It leaves out Secrets unless `secrets` is set.
func Scope(uses []Use, secrets bool) []Use {
	if secrets {
		return uses
	}
	return slices.DeleteFunc(slices.Clone(uses), func(u Use) bool { return u.Kind == Secret })
}

// Content describes the combined content of all ConfigMaps and Secrets that a pod template uses.
type Content struct {
	// Hash is a hash of the content. It is equal for equal content.
	Hash string
	// Modified is the time of the latest modification of any field of these objects. It is zero if
	// the time is unknown, for example because an object is missing and may have been deleted at
	// any time.
	Modified time.Time
	// Parts holds a hash for each object, in the order of the uses in scope, or 0 for a missing
	// object. It is used to identify the object that changed.
	Parts []uint64
	// Missing describes an object or key that does not exist and without which new pods do not
	// start. It is empty if nothing is missing.
	Missing string
}

// ContentOf returns the content of the objects that a pod template in the given namespace uses. get
// returns the record of an object, or nil if the object does not exist.
func ContentOf(namespace string, uses []Use, secrets bool, get func(ID) *Record) Content {
	c := Content{Hash: ofConfigMaps}
	if secrets {
		c.Hash = ofBoth
	}
	known := true
	h := sha256.New()
	scope := Scope(uses, secrets)
	c.Parts = make([]uint64, len(scope))
	for i, use := range scope {
		r := get(ID{use.Kind, namespace, use.Name})
		fmt.Fprintf(h, "%c %s\n", use.Kind, use.Name)
		c.Missing = cmp.Or(c.Missing, use.missing(r))
		if r == nil {
			known = false
			continue
		}
		part := fnv.New64a()
		r.addTo(io.MultiWriter(h, part), use.Keys)
		c.Parts[i] = part.Sum64()
		modified := r.Modified()
		if known = known && !modified.IsZero(); modified.After(c.Modified) {
			c.Modified = modified
		}
	}
	if !known {
		c.Modified = time.Time{}
	}
	c.Hash += hex.EncodeToString(h.Sum(nil)[:sumSize])
	return c
}

// missing describes the first required object or key that does not exist. It returns "" if nothing
// is missing. r is nil if the object does not exist.
func (u Use) missing(r *Record) string {
	switch {
	case !u.Required:
		return ""
	case r == nil:
		return fmt.Sprintf("%s %s does not exist", u.Kind, u.Name)
	case r.whole || r.opaque:
		return ""
	}
	for _, key := range u.RequiredKeys {
		if !r.has(key) {
			return fmt.Sprintf("%s %s has no key %s", u.Kind, u.Name, key)
		}
	}
	return ""
}

// addTo writes the given keys and the hashes of their values to h. If keys is nil, it writes all
// keys.
func (r *Record) addTo(h io.Writer, keys []string) {
	if r.whole {
		fmt.Fprintf(h, "%x\n", r.sums)
		return
	}
	r.each(func(key, sum string) bool {
		if keys == nil || slices.Contains(keys, key) {
			fmt.Fprintf(h, "%s %x\n", key, sum)
		}
		return true
	})
}

// SameScope reports whether two hashes cover the same kinds of objects, so that a difference
// between them means different content.
func SameScope(a, b string) bool {
	scope := func(hash string) string {
		before, _, _ := strings.Cut(hash, "-")
		return before
	}
	return a != "" && b != "" && scope(a) == scope(b)
}
