// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"maps"
	"slices"
)

// Kind is a kind of fault.
type Kind string

// Faults of requests.
const (
	// Error answers with a Status of Code, and does not forward the request. Reason and Message
	// replace those of an API server for such a code; RetryAfter is the header of that name.
	Error Kind = "Error"
	// Close closes the connection, and does not send the request on.
	Close Kind = "Close"
	// Hang does not send the request on and does not answer: not before For has
	// passed or the rule is removed, and then it closes the connection.
	Hang Kind = "Hang"
	// Delay sends the request on after For has passed or the rule is removed;
	// without For it waits for the latter.
	Delay Kind = "Delay"
	// LoseAnswer sends the request on and, when the API server has answered,
	// closes the connection instead of passing the answer on; with Code it answers
	// like Error instead, as a gateway does after a timeout.
	LoseAnswer Kind = "LoseAnswer"
	// HangAnswer sends the request on and does not pass the answer on; it ends
	// like Hang.
	HangAnswer Kind = "HangAnswer"
	// Crash kills the client, which must be the program that the proxy started: At before
	// the request is sent on, or after it was and before the answer. It is started again
	// at once, or after For.
	Crash Kind = "Crash"
	// Stale answers a read as of ResourceVersion, or as of the moment that the rule AsOf has
	// marked, once it is marked; without either, as of the first such read after the rule was
	// added, which is forwarded unchanged. With Cached it affects only reads that an API server may
	// answer from a cache of that age.
	Stale Kind = "Stale"
)

// The values of At.
const (
	Before = "before"
	After  = "after"
)

// Faults of watches, injected into an event.
const (
	// Freeze holds the event and all that comes after it back, with the
	// connection open, until the rule is removed.
	Freeze Kind = "Freeze"
	// DropEvent leaves the event out.
	DropEvent Kind = "DropEvent"
	// DuplicateEvent passes the event on twice.
	DuplicateEvent Kind = "DuplicateEvent"
	// DelayEvent forwards the event after For, and the following events after it.
	DelayEvent Kind = "DelayEvent"
	// CutWatch breaks the stream off before the event.
	CutWatch Kind = "CutWatch"
	// Mark names the resourceVersion of the event as a moment, for Stale. A rule marks only the
	// first moment.
	Mark Kind = "Mark"
	// ExpireWatch sends the client 410 Expired instead of the event, and ends
	// the stream.
	ExpireWatch Kind = "ExpireWatch"
)

// field is a field of Fault that not every kind has.
type field string

const (
	fieldCode            field = "code"
	fieldReason          field = "reason"
	fieldMessage         field = "message"
	fieldRetryAfter      field = "retryAfter"
	fieldFor             field = "for"
	fieldResourceVersion field = "resourceVersion"
	fieldAsOf            field = "asOf"
	fieldCached          field = "cached"
	fieldAt              field = "at"
)

// traits are the targets of a kind and its fields.
type traits struct {
	// verbs are the requests it can be injected into; nil is any.
	verbs []string
	// events: it is injected into events and not into requests.
	events bool
	fields []field
	// needs are the required fields.
	needs []field
}

var (
	answered = []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}
	watches  = []string{"watch", "watchlist"}
	// changes are the requests that a condition may be about.
	changes = []string{"create", "update", "patch", "delete"}
)

// kinds are all faults. The answer of a watch never ends, so it cannot be lost:
// CutWatch has that effect.
var kinds = map[Kind]traits{
	Error:      {fields: []field{fieldCode, fieldReason, fieldMessage, fieldRetryAfter}, needs: []field{fieldCode}},
	Close:      {},
	Hang:       {fields: []field{fieldFor}},
	Delay:      {fields: []field{fieldFor}},
	LoseAnswer: {verbs: answered, fields: []field{fieldCode, fieldReason, fieldMessage}},
	HangAnswer: {verbs: answered, fields: []field{fieldFor}},
	Crash:      {verbs: answered, fields: []field{fieldAt, fieldFor}, needs: []field{fieldAt}},
	Stale:      {verbs: []string{"get", "list", "watchlist"}, fields: []field{fieldResourceVersion, fieldAsOf, fieldCached}},

	Freeze:         {verbs: watches, events: true},
	DropEvent:      {verbs: watches, events: true},
	DuplicateEvent: {verbs: watches, events: true},
	DelayEvent:     {verbs: watches, events: true, fields: []field{fieldFor}, needs: []field{fieldFor}},
	CutWatch:       {verbs: watches, events: true},
	ExpireWatch:    {verbs: watches, events: true},
	Mark:           {verbs: watches, events: true},
}

// Kinds returns the names of all faults, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

// given returns which of its fields a fault sets.
func (f Fault) given() []field {
	var given []field
	for name, set := range map[field]bool{
		fieldCode: f.Code != 0, fieldReason: f.Reason != "", fieldMessage: f.Message != "", fieldRetryAfter: f.RetryAfter != 0,
		fieldFor: f.For != 0, fieldResourceVersion: f.ResourceVersion != "", fieldAsOf: f.AsOf != "", fieldAt: f.At != "", fieldCached: f.Cached,
	} {
		if set {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	return given
}
