// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"encoding/json"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// record is what the opt-in has applied last, as the annotation
// [tidekeeperv1.AppliedAnnotation] on the ScheduledRestart tells. It is written
// together with what it tells about. A field that was not applied is nil.
type record struct {
	Schedule *string `json:"schedule,omitempty"`
	TimeZone *string `json:"timeZone,omitempty"`
	Suspend  *bool   `json:"suspend,omitempty"`
}

// String returns the record as the annotation has it.
func (r record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		// Strings and a bool can always be marshalled.
		panic(err)
	}
	return string(text)
}

// recordOn reads the record on a ScheduledRestart. It returns nil if there is
// none, or none that can be read.
func recordOn(restart *tidekeeperv1.ScheduledRestart) *record {
	r := &record{}
	if json.Unmarshal([]byte(restart.Annotations[tidekeeperv1.AppliedAnnotation]), r) != nil {
		return nil
	}
	return r
}
