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

// Prefixes of hashes. They keep hashes of ConfigMaps alone, hashes of ConfigMaps and Secrets,
// and hashes of another version of this package from being compared.
const (
	ofConfigMaps = "c1-"
	ofBoth       = "s1-"
)

// Scope returns the uses that count: without the Secrets, unless secrets is set.
func Scope(uses []Use, secrets bool) []Use {
	if secrets {
		return uses
	}
	return slices.DeleteFunc(slices.Clone(uses), func(u Use) bool { return u.Kind == Secret })
}

// Content is the content of all objects that a pod template uses.
type Content struct {
	// Hash is equal for equal content.
	Hash string
	// Modified is the time of the last modification of any of the objects, of any field; zero
	// if unknown, because a missing object may have been deleted at any time.
	Modified time.Time
	// Parts are hashes of the content of each object, in the order of the uses that count, to
	// find the object that changed.
	Parts []uint64
	// Missing says which object or key is missing without which new pods do not start; "" if none is.
	Missing string
}

// ContentOf returns the content of the objects used in a namespace. get returns the record of
// an object, nil if it does not exist.
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

// missing says what pods need to start and the record does not have; "" for nothing. The record is nil if the
// object does not exist.
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

// addTo adds the given keys to a hash; nil means all keys.
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

// SameScope reports whether two hashes cover the same kinds of objects, so that they differ
// only if the content does.
func SameScope(a, b string) bool {
	scope := func(hash string) string {
		before, _, _ := strings.Cut(hash, "-")
		return before
	}
	return a != "" && b != "" && scope(a) == scope(b)
}
