// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"encoding/json"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// record is the set of values that the opt-in applied last, from the annotation
// [tidekeeperv1.AppliedAnnotation] on the ScheduledRestart. It is written in the same request
// as the values. A field that was not applied is nil.
type record struct {
	Schedule *string `json:"schedule,omitempty"`
	TimeZone *string `json:"timeZone,omitempty"`
	// MaxPodAgeSeconds is unknown to earlier versions, which do not apply it.
	MaxPodAgeSeconds *int32 `json:"maxPodAgeSeconds,omitempty"`
	Suspend          *bool  `json:"suspend,omitempty"`
	// SuspendAfter is set while the opt-in is switched off: the value that spec.suspend gets
	// when it is switched on again.
	SuspendAfter *bool `json:"suspendAfter,omitempty"`
}

// triggers reports whether the record sets a schedule or a maximum pod age.
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

// recordOn returns the record on a ScheduledRestart; nil if there is none or it cannot be
// parsed.
func recordOn(restart *tidekeeperv1.ScheduledRestart) *record {
	r := &record{}
	if json.Unmarshal([]byte(restart.Annotations[tidekeeperv1.AppliedAnnotation]), r) != nil {
		return nil
	}
	return r
}
