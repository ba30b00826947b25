// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"encoding/json"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// record holds the values that the opt-in last applied to a ScheduledRestart. Fields that were not
// applied are nil. The record is stored in the ScheduledRestart's annotation
// [tidekeeperv1.AppliedAnnotation], which is written in the same request as the values.
type record struct {
	Schedule *string `json:"schedule,omitempty"`
	TimeZone *string `json:"timeZone,omitempty"`
	// MaxPodAgeSeconds is missing from records that were written by earlier versions of the
	// manager, which did not set the field maxPodAgeSeconds.
	MaxPodAgeSeconds *int32 `json:"maxPodAgeSeconds,omitempty"`
	Suspend          *bool  `json:"suspend,omitempty"`
	// SuspendAfter is the value to which spec.suspend is set when the opt-in is switched on again.
	// It is set only while the opt-in is switched off.
	SuspendAfter *bool `json:"suspendAfter,omitempty"`
}

// triggers reports whether the record sets a schedule or a maximum pod age.
func (r *record) triggers() bool { return r.Schedule != nil || r.MaxPodAgeSeconds != nil }

// String returns the record as JSON, in the format of the annotation.
func (r record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		// Pointers to strings, numbers and bools can always be marshaled.
		panic(err)
	}
	return string(text)
}

// recordOn returns the record stored in a ScheduledRestart's annotation, or nil if the record is
// missing or invalid.
func recordOn(restart *tidekeeperv1.ScheduledRestart) *record {
	r := &record{}
	if json.Unmarshal([]byte(restart.Annotations[tidekeeperv1.AppliedAnnotation]), r) != nil {
		return nil
	}
	return r
}
