// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// moment says when something is, as people do, on the clock of a place.
func moment(t, now time.Time, in *time.Location) string {
	t, now = t.In(in), now.In(in)
	clock := t.Format("15:04")
	switch days := daysBetween(now, t); {
	case days == 0:
		return "today " + clock
	case days == 1:
		return "tomorrow " + clock
	case days == -1:
		return "yesterday " + clock
	case days > 1 && days < 7:
		return t.Format("Mon ") + clock
	case t.Year() == now.Year():
		return t.Format("Mon 2 Jan ") + clock
	default:
		return t.Format("Mon 2 Jan 2006 ") + clock
	}
}

// daysBetween counts midnights on the calendar, which a change of the clock
// does not move.
func daysBetween(from, to time.Time) int {
	date := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(date(to).Sub(date(from)) / (24 * time.Hour))
}

// coming says when something will be, or that it is due.
func coming(t, now time.Time, in *time.Location) string {
	if !t.After(now) {
		return "due since " + moment(t, now, in)
	}
	return fmt.Sprintf("%s (in %s)", moment(t, now, in), duration.HumanDuration(t.Sub(now)))
}

// ago says how long ago something was.
func ago(t, now time.Time) string { return duration.HumanDuration(max(0, now.Sub(t))) }

// span is a flag for a length of time, with days and weeks too.
type span time.Duration

// String is part of pflag.Value.
func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(time.Duration(*s).String(), "0s"), "0m")
}

// Type is part of pflag.Value.
func (s *span) Type() string { return "duration" }

// Set is part of pflag.Value.
func (s *span) Set(text string) error {
	length, err := time.ParseDuration(text)
	for unit, day := range map[string]float64{"d": 1, "w": 7} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			var n float64
			n, err = strconv.ParseFloat(number, 64)
			if n > 36500 {
				err = strconv.ErrRange
			}
			length = time.Duration(n * day * float64(24*time.Hour))
		}
	}
	if err != nil || length <= 0 {
		return fmt.Errorf("write a length of time such as 30m, 24h or 7d")
	}
	*s = span(length)
	return nil
}

// plural puts a number before a noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// and joins what is said one after the other.
func and(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}
