// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Duration formats a duration without trailing zero units, for example "1h" instead of "1h0m0s".
func Duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// SecondsWithChange formats a duration in seconds in the same way as kubectl, followed by the
// change from the previous duration: "9s (+2s)". A change of nil or 0 is omitted.
func SecondsWithChange(length int32, change *int32) string {
	human := func(n int32) string { return duration.HumanDuration(time.Duration(n) * time.Second) }
	switch {
	case change == nil || *change == 0:
		return human(length)
	case *change < 0:
		return human(length) + " (-" + human(-*change) + ")"
	default:
		return human(length) + " (+" + human(*change) + ")"
	}
}
