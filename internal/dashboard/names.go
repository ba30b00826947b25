// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"regexp"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// longestName is the maximum number of displayed characters of a name or namespace.
const longestName = 40

// shownName is the name of an object, prepared for display.
type shownName struct {
	// Before is the prefix with the namespace and kind, such as shop/ or shop/Deployment/. Name is
	// the rest of the name.
	Before, Name string
	// Whole is the complete name if the displayed name is shortened. It is "" otherwise.
	Whole string
}

// nameOf splits a name such as shop/Deployment/web into the prefix and the last part. It shortens
// long parts in the middle, because names often differ only at the end.
func nameOf(whole string) shownName {
	var n shownName
	at := strings.LastIndex(whole, "/")
	n.Name = cutMiddle(whole[at+1:])
	if at >= 0 {
		n.Before = cutMiddle(whole[:at]) + "/"
	}
	if n.Before+n.Name != whole {
		n.Whole = whole
	}
	return n
}

// cutMiddle replaces the middle of a long string by an ellipsis.
func cutMiddle(text string) string {
	runes := []rune(text)
	if len(runes) <= longestName {
		return text
	}
	const end = longestName / 3
	return string(runes[:longestName-1-end]) + "…" + string(runes[len(runes)-end:])
}

// shownTime is a time prepared for display: in words, with the exact time as a tooltip.
type shownTime struct {
	Text  string
	Exact string // date, time and zone, in the time zone of the page
	ISO   string // RFC 3339, for the HTML attribute datetime
}

// timeText returns a time that is displayed as the given words.
func timeText(t time.Time, local *time.Location, words string) shownTime {
	return shownTime{words, t.In(local).Format("2006-01-02 15:04:05 MST"), t.UTC().Format(time.RFC3339)}
}

// moment returns a past or future time that is displayed with its day.
func moment(t, now time.Time, local *time.Location) shownTime {
	return timeText(t, local, term.Moment(t, now, local))
}

// ago returns a past time that is displayed as the elapsed time, such as "5m ago".
func ago(t, now time.Time, local *time.Location) shownTime {
	return timeText(t, local, term.Ago(t, now)+" ago")
}

// writtenTime matches RFC 3339 timestamps in messages.
var writtenTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)

// wordedTimes splits a message at its timestamps. Each returned part is either a timestamp in
// words, or text before, between or after the timestamps.
func wordedTimes(message string, now time.Time, local *time.Location) []shownTime {
	var parts []shownTime
	text := func(s string) {
		if s != "" {
			parts = append(parts, shownTime{Text: s})
		}
	}
	end := 0
	for _, at := range writtenTime.FindAllStringIndex(message, -1) {
		t, err := time.Parse(time.RFC3339, message[at[0]:at[1]])
		if err != nil {
			continue
		}
		text(message[end:at[0]])
		parts = append(parts, moment(t, now, local))
		end = at[1]
	}
	text(message[end:])
	return parts
}

// zoneBeside returns a schedule's time zone if its local time currently differs from the page's. It
// returns "" otherwise.
func zoneBeside(zone string, now time.Time, local *time.Location) string {
	in, err := schedule.Zone(zone)
	if err != nil {
		return zone
	}
	_, theirs := now.In(in).Zone()
	if _, ours := now.In(local).Zone(); ours == theirs {
		return ""
	}
	return zone
}
