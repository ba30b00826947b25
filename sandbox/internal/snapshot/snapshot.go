// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot keeps all objects of a cluster as they are at one moment, and puts them
// back.
//
// A snapshot is what etcd has, byte by byte, so that an object that is put back has the UID,
// the creation time and the status that it had. It is put back by writes to etcd, while the
// API server runs: those who watch see objects that change, come and go, as ever.
//
//	snapshot.go   what differs between a snapshot and what is there now
//	file.go       a snapshot as a file
//	etcd.go       take one, and put it back
package snapshot

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// prefix is where the API server keeps objects. Its other keys are about etcd itself.
const prefix = "/registry/"

// Snapshot is all objects of a cluster at one moment.
type Snapshot struct {
	// Kubernetes is the version that wrote them, such as v1.36.3.
	Kubernetes string
	// Revision is that of etcd at the moment.
	Revision int64
	Taken    time.Time
	// Objects has the stored bytes of each object by its key in etcd.
	Objects map[string][]byte
}

// Change is one write that makes an object what it is in a snapshot.
type Change struct {
	Key string
	// Value is nil if the object is not in the snapshot.
	Value []byte
}

// changes returns the writes that make the present objects those of the snapshot: first what
// is missing or differs, definitions and namespaces before what is in them, and then what is
// there and was not.
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

// Where CustomResourceDefinitions and nodes are.
const (
	definitions = prefix + "apiextensions.k8s.io/customresourcedefinitions/"
	nodes       = prefix + "minions/"
)

// Has reports whether this snapshot has all objects of another one, as they are there. What is written at rest does not count, nor what differs in nodes.
func (s *Snapshot) Has(other *Snapshot) bool {
	for key, value := range other.Objects {
		if now, is := s.Objects[key]; !beats(key) && (!is || !strings.HasPrefix(key, nodes) && !bytes.Equal(now, value)) {
			return false
		}
	}
	return true
}

// SameKinds reports whether another snapshot has the same CustomResourceDefinitions, byte by
// byte.
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

// batches cuts changes into parts that etcd takes in one transaction: no more writes in one
// than it allows, and no more bytes.
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
