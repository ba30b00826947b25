// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot saves all objects of a cluster as of a single revision, and restores them.
//
// A snapshot contains etcd's values unchanged, so that a restored object keeps its UID, creation
// time and status. A restore writes to etcd while the API server is running. Clients that watch
// receive ordinary events for changed, new and deleted objects.
//
//	snapshot.go   the writes that restore a snapshot
//	file.go       snapshot files
//	etcd.go       takes and restores snapshots
package snapshot

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// prefix is the etcd key prefix of all API objects.
const prefix = "/registry/"

// Snapshot holds all objects of a cluster at a revision.
type Snapshot struct {
	// Kubernetes is the version of the control plane, such as v1.36.3.
	Kubernetes string
	// Revision is the etcd revision at which the objects were read.
	Revision int64
	Taken    time.Time
	// Objects maps the etcd key of each object to the object's bytes as stored in etcd.
	Objects map[string][]byte
}

// Change is a single write to etcd that restores an object.
type Change struct {
	Key string
	// Value is the object's bytes in the snapshot, or nil if the object is not in the snapshot and
	// must be deleted.
	Value []byte
}

// changes returns the writes that turn the current objects into the snapshot. Writes of missing and
// changed objects come first, with CustomResourceDefinitions and namespaces before the objects that
// depend on them. Deletions of objects that are not in the snapshot come last.
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

// Has reports whether this snapshot contains all objects of the other snapshot unchanged. It
// ignores changes to nodes, and all objects that are written even in a quiet cluster, such as
// Leases.
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
