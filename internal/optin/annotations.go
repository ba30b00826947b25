// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// wish holds the values of the annotations with which a workload opts in to scheduled restarts.
type wish struct {
	// in is true if the opt-in annotation has the value "true".
	in bool
	// off is true if the opt-in annotation has the value "false", which switches the opt-in off.
	// The workload's ScheduledRestart is then kept but suspended, and the other annotations are
	// ignored.
	off bool
	// schedule and timeZone hold the values of the corresponding annotations, or nil if an
	// annotation is missing.
	schedule, timeZone *string
	// maxPodAgeSeconds holds the value of the corresponding annotation, or nil if the annotation is
	// missing.
	maxPodAgeSeconds *int32
}

// triggers reports whether the annotations set a schedule or a maximum pod age.
func (w *wish) triggers() bool { return w.schedule != nil || w.maxPodAgeSeconds != nil }

// parseWish parses the opt-in annotations of a workload. Its error is shown to users in an event.
func parseWish(annotations map[string]string) (wish, error) {
	value, ok := annotations[tidekeeperv1.OptInAnnotation]
	switch {
	case !ok:
		return wish{}, nil
	case value == "false":
		return wish{off: true}, nil
	case value != "true":
		return wish{}, fmt.Errorf(`%s must be "true" or "false", not %.64q`, tidekeeperv1.OptInAnnotation, value)
	}
	w := wish{
		in:       true,
		schedule: lookUp(annotations, tidekeeperv1.OptInScheduleAnnotation),
		timeZone: lookUp(annotations, tidekeeperv1.OptInTimeZoneAnnotation),
	}
	// The schedule and the time zone are validated separately, because users may have set either of
	// them manually in the ScheduledRestart.
	if w.schedule != nil {
		if _, err := schedule.Parse(*w.schedule, ""); err != nil {
			return wish{}, fmt.Errorf("%s: %w", tidekeeperv1.OptInScheduleAnnotation, err)
		}
	}
	if w.timeZone != nil {
		if *w.timeZone == "" {
			return wish{}, errors.New(tidekeeperv1.OptInTimeZoneAnnotation + " is empty: write a name from the IANA database, such as Europe/Berlin, or remove the annotation")
		}
		if _, err := schedule.Parse("@daily", *w.timeZone); err != nil {
			return wish{}, fmt.Errorf("%s: %w", tidekeeperv1.OptInTimeZoneAnnotation, err)
		}
	}
	if text := lookUp(annotations, tidekeeperv1.OptInMaxPodAgeAnnotation); text != nil {
		age, err := strconv.ParseInt(*text, 10, 32)
		if err != nil || age < tidekeeperv1.MinPodAgeSeconds || age > tidekeeperv1.MaxPodAgeSeconds {
			return wish{}, fmt.Errorf("%s must be a number of seconds from %d to %d, not %.64q",
				tidekeeperv1.OptInMaxPodAgeAnnotation, tidekeeperv1.MinPodAgeSeconds, tidekeeperv1.MaxPodAgeSeconds, *text)
		}
		w.maxPodAgeSeconds = ptr.To(int32(age))
	}
	return w, nil
}

func lookUp(annotations map[string]string, key string) *string {
	if value, ok := annotations[key]; ok {
		return &value
	}
	return nil
}
