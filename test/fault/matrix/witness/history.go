// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package witness judges what happened in a cluster by its history alone: every
// version of every object, in the order in which the API server has written them.
// Where a run ends says nothing about what was wrong on the way and put right
// again; that is what the checks here are for.
//
// Nothing in it knows how the manager works. It knows what the manager has
// promised.
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

// Event is one version of an object, or its end.
type Event struct {
	Type watch.EventType
	// Object is the object afterwards; of a deletion, as it was last.
	Object client.Object
	// ByUser: somebody wrote this who is not Tidekeeper. Of all else nothing is
	// known.
	ByUser bool

	// Before is the version before it, nil if there is none.
	Before client.Object
}

// version is the place of an event in the history. All objects of a cluster are in
// one etcd, which counts its writes.
func (e *Event) version() uint64 {
	version, _ := strconv.ParseUint(e.Object.GetResourceVersion(), 10, 64)
	return version
}

// String says what was written, and as which version.
func (e *Event) String() string {
	return fmt.Sprintf("%s %T %s, version %s", e.Type, e.Object, e.Object.GetName(), e.Object.GetResourceVersion())
}

// History is what happened, in order.
type History []Event

// InOrder makes a history of the events of several watches, each of which may
// come more than once.
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

// Check is one promise that must have held all the time.
type Check struct {
	Name string
	// Broken returns a line for each time it did not.
	Broken func(History) []string
}

// Checks are all.
var Checks = []Check{
	{"what others put on a node stays", theirsStays},
	{"what is put on a node is on record in the same write", recorded},
	{"a node keeps its shape", shapeKept},
	{"a pool that says it is healthy is", healthyIsTrue},
	{"a RuntimeClass stays while its pool asks for it", runtimeClassKept},
	{"a pool goes after all of it has gone from the nodes", cleanBeforeGone},
	{"a template is written for a tick, and once for each", tickOnce},
	{"of one workload, one restart at a time", oneAtATime},
	{"a tick is recorded once", recordedOnce},
	{"a tick is told once", toldOnce},
}

// Judge returns what was wrong, each with the name of the promise.
func (h History) Judge() []string {
	var wrong []string
	for _, check := range Checks {
		for _, line := range check.Broken(h) {
			wrong = append(wrong, check.Name+": "+line)
		}
	}
	return wrong
}
