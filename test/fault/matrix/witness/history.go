// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package witness judges what happened in a cluster by its history alone: every
// version of every object, in the order in which the API server wrote them. The final
// state of a run does not show what was temporarily wrong; the checks here do.
//
// The package does not know how the manager works, only what the manager promises.
package witness

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Event is one version of an object, or its deletion.
type Event struct {
	Type watch.EventType
	// Object is the object afterwards; for a deletion, its last state.
	Object client.Object
	// ByUser: a user wrote this, and not Tidekeeper. The writer of all other events is
	// unknown.
	ByUser bool

	// Before is the previous version, nil if there is none.
	Before client.Object
}

// version is the place of an event in the history. All objects of a cluster are in
// one etcd, which counts its writes.
func (e *Event) version() uint64 {
	version, _ := strconv.ParseUint(e.Object.GetResourceVersion(), 10, 64)
	return version
}

// String returns the object that was written, and its version.
func (e *Event) String() string {
	return fmt.Sprintf("%s %T %s, version %s", e.Type, e.Object, e.Object.GetName(), e.Object.GetResourceVersion())
}

// History is a list of events, in order.
type History []Event

// InOrder returns a history of the events of several watches, which may contain
// duplicates.
func InOrder(events []Event) History {
	h := slices.Clone(events)
	slices.SortStableFunc(h, func(a, b Event) int { return cmp.Compare(a.version(), b.version()) })
	type key struct {
		kind    string
		uid     types.UID
		version string
		end     bool
	}
	last := map[types.UID]client.Object{}
	seen := map[key]bool{}
	ordered := h[:0]
	for _, e := range h {
		uid := e.Object.GetUID()
		k := key{fmt.Sprintf("%T", e.Object), uid, e.Object.GetResourceVersion(), e.Type == watch.Deleted}
		if seen[k] {
			continue
		}
		seen[k] = true
		e.Before = last[uid]
		if last[uid] = e.Object; e.Type == watch.Deleted {
			delete(last, uid)
		}
		ordered = append(ordered, e)
	}
	return ordered
}

// Check is one promise that must have been kept all the time.
type Check struct {
	Name string
	// Broken returns a line for each time it was broken.
	Broken func(History) []string
}

// Checks are all checks.
var Checks = []Check{
	{"what others put on a node stays", theirsStays},
	{"what is put on a node is on record in the same write", recorded},
	{"a node keeps its shape", shapeKept},
	{"a pool that says it is healthy is", healthyIsTrue},
	{"a RuntimeClass stays while its pool asks for it", runtimeClassKept},
	{"a pool goes after all of it has gone from the nodes", cleanBeforeGone},
	{"a template is written for a tick, and once for each", tickOnce},
	{"of one workload, one restart at a time", oneAtATime},
	{"a restart comes after those that come first", afterTheFirst},
	{"a tick is recorded once", recordedOnce},
	{"a tick is reported once", reportedOnce},
}

// Judge returns all broken promises, each with the name of its check.
func (h History) Judge() []string {
	var wrong []string
	for _, check := range Checks {
		for _, line := range check.Broken(h) {
			wrong = append(wrong, check.Name+": "+line)
		}
	}
	return wrong
}
