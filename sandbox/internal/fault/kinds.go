// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"maps"
	"slices"
)

// Kind is the name of a kind of fault, such as Error or Freeze.
type Kind string

// Faults that are injected into requests.
const (
	// Error responds with the HTTP status code Code and an error Status, and does not forward the
	// request. Reason and Message override the API server's defaults for this code. RetryAfter sets
	// the Retry-After header.
	Error Kind = "Error"
	// Close closes the connection, and does not forward the request.
	Close Kind = "Close"
	// Hang neither forwards nor answers the request. It closes the connection after the duration
	// For, or when the rule is removed.
	Hang Kind = "Hang"
	// Delay forwards the request after the duration For, or when the rule is removed. If For is not
	// set, it waits until the rule is removed.
	Delay Kind = "Delay"
	// LoseAnswer forwards the request, discards the API server's response, and closes the
	// connection. If Code is set, it responds with this HTTP status code instead of closing the
	// connection, like a gateway after a timeout.
	LoseAnswer Kind = "LoseAnswer"
	// HangAnswer forwards the request but not the response. It closes the connection after the
	// duration For, or when the rule is removed.
	HangAnswer Kind = "HangAnswer"
	// Crash kills the client, which must have been started by the proxy. The field At selects the
	// time: before the request is forwarded, or after the API server has responded but before the
	// client receives the response. The client is restarted after the duration For, or immediately
	// if For is not set.
	Crash Kind = "Crash"
	// Stale answers a read as of the resourceVersion in the field ResourceVersion, or as of the
	// event recorded by the Mark rule that the field AsOf names. If neither field is set, the first
	// matching read is forwarded unchanged, and later reads are answered as of the resourceVersion
	// in its response. The field Cached restricts the fault to lists that an API server may answer
	// from a cache as of that resourceVersion.
	Stale Kind = "Stale"
)

// Values of Fault.At: whether a Crash fault kills the client before or after the API server handles
// the request.
const (
	Before = "before"
	After  = "after"
)

// Faults that are injected into single events of a watch.
const (
	// Freeze holds back the event and all later events until the rule is removed. The connection
	// stays open.
	Freeze Kind = "Freeze"
	// DropEvent does not forward the event.
	DropEvent Kind = "DropEvent"
	// DuplicateEvent forwards the event twice.
	DuplicateEvent Kind = "DuplicateEvent"
	// DelayEvent delays the event by the duration For. Later events of the same watch wait until
	// the delayed event is sent.
	DelayEvent Kind = "DelayEvent"
	// CutWatch closes the stream instead of sending the event.
	CutWatch Kind = "CutWatch"
	// Mark records the event's resourceVersion, which a Stale fault can refer to with AsOf. A rule
	// records only the first event that it hits.
	Mark Kind = "Mark"
	// ExpireWatch sends 410 Expired instead of the event, and ends the stream.
	ExpireWatch Kind = "ExpireWatch"
)

// field is the name of a Fault field that is valid only for some kinds of faults.
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

// traits describes a kind of fault: which requests or events it can hit, and which fields it has.
type traits struct {
	// verbs lists the request verbs that the fault can hit; nil means any verb.
	verbs []string
	// events is set if the fault hits watch events instead of requests.
	events bool
	fields []field
	// needs lists the fields that the fault requires.
	needs []field
}

var (
	answered = []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}
	watches  = []string{"watch", "watchlist"}
	// changes lists the verbs of requests to which a rule's condition (When) can apply.
	changes = []string{"create", "update", "patch", "delete"}
)

// kinds maps each kind of fault to its traits. LoseAnswer, HangAnswer and Crash exclude watches,
// because the response of a watch does not end. CutWatch is the equivalent of LoseAnswer for
// watches.
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

// Kinds returns the sorted names of all kinds of faults.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

// given returns the names of the fields that are set in a fault, except for the field Kind. Each of
// these fields is valid only for some kinds of faults.
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
