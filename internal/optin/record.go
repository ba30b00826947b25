// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"encoding/json"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// record is what the opt-in applied last, from the annotation
// [tidekeeperv1.AppliedAnnotation] on the ScheduledRestart. It is written in the same
// request as the fields that it describes. A field that was not applied is nil.
type record struct {
	Schedule *string `json:"schedule,omitempty"`
	TimeZone *string `json:"timeZone,omitempty"`
	// MaxPodAgeSeconds is not known to earlier versions, which apply none then.
	MaxPodAgeSeconds *int32 `json:"maxPodAgeSeconds,omitempty"`
	Suspend          *bool  `json:"suspend,omitempty"`
	// SuspendAfter is set while the opt-in is switched off: what spec.suspend becomes
	// when it is switched on again.
	SuspendAfter *bool `json:"suspendAfter,omitempty"`
}

// triggers reports whether the record has an annotation that says when to restart the workload.
func (r *record) triggers() bool { return r.Schedule != nil || r.MaxPodAgeSeconds != nil }

// String returns the record as the value of the annotation.
func (r record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		// Strings, numbers and bools can always be marshalled.
		panic(err)
	}
	return string(text)
}

// recordOn returns the record on a ScheduledRestart, or nil if there is none or it
// cannot be parsed.
func recordOn(restart *tidekeeperv1.ScheduledRestart) *record {
	r := &record{}
	if json.Unmarshal([]byte(restart.Annotations[tidekeeperv1.AppliedAnnotation]), r) != nil {
		return nil
	}
	return r
}
