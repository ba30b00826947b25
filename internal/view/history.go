// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// Outcome is the outcome of a tick (scheduled time), with its severity.
type Outcome struct {
	Text     string   `json:"text"` // outcome and reason, such as Missed/Frozen
	Severity Severity `json:"severity,omitempty"`
}

func outcomeOf(record tidekeeperv1.RestartRecord) Outcome {
	o := Outcome{Text: string(record.Outcome), Severity: Warning}
	if record.Reason != "" {
		o.Text += "/" + record.Reason
	}
	switch record.Outcome {
	case tidekeeperv1.OutcomeSucceeded:
		o.Severity = Good
	case tidekeeperv1.OutcomeFailed:
		o.Severity = Bad
	}
	return o
}

// HistoryEntry is a past tick (scheduled time), or the tick of a restart in progress, with its
// outcome.
type HistoryEntry struct {
	Tick    time.Time `json:"tick"`
	Trigger string    `json:"trigger"`
	Outcome Outcome   `json:"outcome"`
	// Waited is the time between the tick and the start of the restart. Took is the duration of the
	// restart, or the duration so far if the restart is in progress. Both are nil if no restart
	// started.
	Waited  *time.Duration           `json:"waited,omitempty"`
	Took    *time.Duration           `json:"took,omitempty"`
	Pods    *int32                   `json:"pods,omitempty"` // number of restarted pods; nil unless the restart succeeded
	Startup *tidekeeperv1.PodStartup `json:"startup,omitempty"`
	Message string                   `json:"message,omitempty"`
}

// HistoryOf returns a ScheduledRestart's past ticks (scheduled times), the latest first. A restart
// in progress is the first entry.
func HistoryOf(r *tidekeeperv1.ScheduledRestart, now time.Time) []HistoryEntry {
	entries := []HistoryEntry{}
	if active := r.Status.Active; active != nil {
		entries = append(entries, HistoryEntry{
			Tick: active.ScheduledTime.Time, Trigger: string(active.Trigger), Outcome: Outcome{Text: tidekeeperv1.ReasonRestarting},
			Waited: between(active.ScheduledTime.Time, active.StartedTime.Time), Took: between(active.StartedTime.Time, now),
		})
	}
	for _, record := range r.Status.History {
		entry := HistoryEntry{
			Tick: record.ScheduledTime.Time, Trigger: string(record.Trigger), Outcome: outcomeOf(record), Startup: record.PodStartup, Message: messageOf(record),
		}
		if started := record.StartedTime; started != nil {
			entry.Waited, entry.Took = between(record.ScheduledTime.Time, started.Time), between(started.Time, record.CompletedTime.Time)
		}
		if record.Outcome == tidekeeperv1.OutcomeSucceeded {
			entry.Pods = &record.Pods
		}
		entries = append(entries, entry)
	}
	return entries
}

// between returns the time between two timestamps, or 0 if the second is before the first.
func between(from, to time.Time) *time.Duration {
	length := max(0, to.Sub(from))
	return &length
}

// messageOf returns the message of a record of a tick in a restart history. If the record also
// represents earlier ticks, their number is appended.
func messageOf(record tidekeeperv1.RestartRecord) string {
	n := int(record.EarlierTicks)
	if n == 0 {
		return record.Message
	}
	message := record.Message
	if message != "" {
		message += "; "
	}
	message += "so were " + plural(n, "tick") + " before it"
	if n >= tidekeeperv1.MaxEarlierTicks {
		message += ", or more"
	}
	return message
}

// StartupTexts formats the median and maximum start-up times of the pods that the restart created.
// The median is followed by the number of measured pods if not all were measured. Both are "-" if
// no pods were measured.
func (e *HistoryEntry) StartupTexts() (median, worst string) {
	s := e.Startup
	if s == nil {
		return "-", "-"
	}
	median = text.SecondsWithChange(s.MedianSeconds, s.MedianChangeSeconds)
	if e.Pods == nil || s.Pods != *e.Pods {
		median += ", " + plural(int(s.Pods), "pod")
	}
	return median, text.SecondsWithChange(s.MaxSeconds, s.MaxChangeSeconds)
}

// plural returns a number with a noun in the singular or plural.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprint(n) + " " + noun + "s"
}
