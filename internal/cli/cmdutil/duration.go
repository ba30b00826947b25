// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// Duration is a flag value for durations. It accepts the units of [time.ParseDuration], and also d
// (days) and w (weeks).
type Duration struct {
	time.Duration
	// Max is the maximum duration; 0 means a hundred years.
	Max time.Duration
}

const day = 24 * time.Hour

// String implements pflag.Value.
func (d *Duration) String() string {
	if d.Duration == 0 {
		return ""
	}
	return view.FormatDuration(d.Duration)
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	longest := cmp.Or(d.Max, 36500*day)
	length, err := time.ParseDuration(text)
	for unit, days := range map[string]float64{"d": 1, "w": 7} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			var n float64
			n, err = strconv.ParseFloat(number, 64)
			// Bound the number before the conversion to a Duration, which could otherwise overflow.
			length = time.Duration(min(n*days, 2*longest.Hours()/24) * float64(day))
		}
	}
	switch {
	case err != nil || length <= 0:
		return errors.New("write a duration such as 30m, 24h or 7d")
	case length > longest:
		return fmt.Errorf("at most %dd", longest/day)
	default:
		d.Duration = length
		return nil
	}
}
