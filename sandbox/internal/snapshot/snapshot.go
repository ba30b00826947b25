// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot saves all objects of a cluster as of a single revision, and restores them.
//
// A snapshot is the content of etcd, byte by byte, so that a restored object has its old UID,
// creation time and status. It is restored by writes to etcd, while the API server runs: clients
// that watch see objects that change, come and go, as ever.
//
//	snapshot.go   the writes that restore a snapshot
//	file.go       a snapshot as a file
//	etcd.go       takes and restores a snapshot
package snapshot

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// prefix is the prefix of all objects of the API server in etcd.
const prefix = "/registry/"

// Snapshot has all objects of a cluster at a revision.
type Snapshot struct {
	// Kubernetes is the version of the control plane, such as v1.36.3.
	Kubernetes string
	// Revision is the etcd revision.
	Revision int64
	Taken    time.Time
	// Objects has the stored bytes of each object, by its key in etcd.
	Objects map[string][]byte
}

// Change is a write that restores an object of a snapshot.
type Change struct {
	Key string
	// Value is nil to delete an object that is not in the snapshot.
	Value []byte
}

// changes returns the writes that turn the present objects into the snapshot: first missing and changed
// objects, with definitions and namespaces before the objects in them, then deletions of new objects.
func (s *Snapshot) changes(now map[string][]byte) []Change {
	var changes []Change
	for key, value := range s.Objects {
		if old, ok := now[key]; !ok || !bytes.Equal(old, value) {
			changes = append(changes, Change{key, value})
		}
	}
	for key := range now {
		if _, ok := s.Objects[key]; !ok {
			changes = append(changes, Change{Key: key})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Key, b.Key))
	})
	return changes
}

// etcd key prefixes of CustomResourceDefinitions and nodes.
const (
	definitions = prefix + "apiextensions.k8s.io/customresourcedefinitions/"
	nodes       = prefix + "minions/"
)

// Has reports whether this snapshot has all objects of another snapshot, unchanged, apart from heartbeats and
// changes of nodes.
func (s *Snapshot) Has(other *Snapshot) bool {
	for key, value := range other.Objects {
		if now, is := s.Objects[key]; !beats(key) && (!is || !strings.HasPrefix(key, nodes) && !bytes.Equal(now, value)) {
			return false
		}
	}
	return true
}

// SameKinds reports whether both snapshots have identical CustomResourceDefinitions.
func (s *Snapshot) SameKinds(other *Snapshot) bool {
	return maps.EqualFunc(kinds(s.Objects), kinds(other.Objects), bytes.Equal)
}

func kinds(objects map[string][]byte) map[string][]byte {
	found := map[string][]byte{}
	for key, value := range objects {
		if strings.HasPrefix(key, definitions) {
			found[key] = value
		}
	}
	return found
}

func rank(c Change) int {
	switch {
	case c.Value == nil:
		return 3
	case strings.HasPrefix(c.Key, definitions):
		return 0
	case strings.HasPrefix(c.Key, prefix+"namespaces/"):
		return 1
	default:
		return 2
	}
}

// batches divides changes into transactions with at most the given numbers of writes and bytes.
func batches(changes []Change, writes, bytes int) [][]Change {
	var parts [][]Change
	var part []Change
	size := 0
	for _, c := range changes {
		n := len(c.Key) + len(c.Value)
		if len(part) == writes || len(part) > 0 && size+n > bytes {
			parts, part, size = append(parts, part), nil, 0
		}
		part, size = append(part, c), size+n
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}
