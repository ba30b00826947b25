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
	// Error responds with a Status of Code, and does not forward the request. Reason and Message replace the
	// API server's for such a code; RetryAfter sets the header of that name.
	Error Kind = "Error"
	// Close closes the connection, and does not forward the request.
	Close Kind = "Close"
	// Hang neither forwards nor answers the request. After For, or when the rule is removed, it closes the
	// connection.
	Hang Kind = "Hang"
	// Delay forwards the request after For, or when the rule is removed; without For, only then.
	Delay Kind = "Delay"
	// LoseAnswer forwards the request and closes the connection after the API server has responded, without
	// passing the response on. With Code it responds like Error instead, as a gateway does after a timeout.
	LoseAnswer Kind = "LoseAnswer"
	// HangAnswer forwards the request, but not its response; it ends like Hang.
	HangAnswer Kind = "HangAnswer"
	// Crash kills the client, which must be the program that the proxy started. At says when: before the
	// request is forwarded, or after that and before the response. The client is restarted at once, or after
	// For.
	Crash Kind = "Crash"
	// Stale answers a read as of ResourceVersion, or as of the moment that the rule AsOf has marked; without
	// either, as of the first such read after the rule was added, which is forwarded unchanged. With Cached
	// it affects only reads that an API server may answer from a cache of that age.
	Stale Kind = "Stale"
)

// Values of At.
const (
	Before = "before"
	After  = "after"
)

// Faults of watches, which are injected into single events.
const (
	// Freeze holds back the event and all later events, with the connection open, until the rule is removed.
	Freeze Kind = "Freeze"
	// DropEvent omits the event.
	DropEvent Kind = "DropEvent"
	// DuplicateEvent forwards the event twice.
	DuplicateEvent Kind = "DuplicateEvent"
	// DelayEvent forwards the event after For, and later events after it.
	DelayEvent Kind = "DelayEvent"
	// CutWatch closes the stream before the event.
	CutWatch Kind = "CutWatch"
	// Mark records the resourceVersion of the event as a moment for Stale. A rule marks only its first event.
	Mark Kind = "Mark"
	// ExpireWatch sends 410 Expired instead of the event, and ends the stream.
	ExpireWatch Kind = "ExpireWatch"
)

// field is the name of a field of Fault that only some kinds have.
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

// traits describes the targets and the fields of a kind.
type traits struct {
	// verbs are the verbs of requests that the fault can hit; nil means any.
	verbs []string
	// events is set if the fault hits events instead of requests.
	events bool
	fields []field
	// needs are the required fields.
	needs []field
}

var (
	answered = []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}
	watches  = []string{"watch", "watchlist"}
	// changes are the verbs of requests to which a condition can apply.
	changes = []string{"create", "update", "patch", "delete"}
)

// kinds has the traits of all faults. The response to a watch never ends, so it cannot be lost: CutWatch has
// that effect.
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

// given returns the kind-specific fields that a fault sets.
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
