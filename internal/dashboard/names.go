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

// longestName is how many characters of a name, or of a namespace, are shown.
const longestName = 40

// shownName is the name of an object as pages show it.
type shownName struct {
	// Before is the part that says where it is, such as shop/ or shop/Deployment/, and Name the rest.
	Before, Name string
	// Whole is the whole name, if a part of it is left out.
	Whole string
}

// nameOf splits a name into its namespace and the rest, and leaves out the middle of long parts: the
// end of a name often tells it from others.
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

// cutMiddle leaves out the middle of a long text.
func cutMiddle(text string) string {
	runes := []rune(text)
	if len(runes) <= longestName {
		return text
	}
	const end = longestName / 3
	return string(runes[:longestName-1-end]) + "…" + string(runes[len(runes)-end:])
}

// shownTime is a time as pages show it: in words, with its exact form beside them.
type shownTime struct {
	Text  string
	Exact string // on the clock of the page, with its date and its zone
	ISO   string // for programs
}

// timeText returns a time with the words for it.
func timeText(t time.Time, local *time.Location, words string) shownTime {
	return shownTime{words, t.In(local).Format("2006-01-02 15:04:05 MST"), t.UTC().Format(time.RFC3339)}
}

// moment is a time in the past or to come, with its day.
func moment(t, now time.Time, local *time.Location) shownTime {
	return timeText(t, local, term.Moment(t, now, local))
}

// ago is how long ago a time was.
func ago(t, now time.Time, local *time.Location) shownTime {
	return timeText(t, local, term.Ago(t, now)+" ago")
}

// writtenTime finds the times in messages.
var writtenTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)

// wordedTimes splits a message into its times, in words, and the text between them.
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

// zoneBeside returns the time zone of a schedule if its clock is another than that of the page now.
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
