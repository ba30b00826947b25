// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"errors"
	"fmt"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// wish is what the annotations of a workload ask for.
type wish struct {
	// in: there is to be a ScheduledRestart.
	in bool
	// schedule and timeZone are what it is to have; nil: no annotation says.
	schedule, timeZone *string
}

// parseWish reads the annotations of a workload. Its error is for the person
// who wrote them.
func parseWish(annotations map[string]string) (wish, error) {
	value, ok := annotations[tidekeeperv1.OptInAnnotation]
	switch {
	case !ok || value == "false":
		return wish{}, nil
	case value != "true":
		return wish{}, fmt.Errorf(`%s must be "true" or "false", not %.64q`, tidekeeperv1.OptInAnnotation, value)
	}
	w := wish{
		in:       true,
		schedule: lookUp(annotations, tidekeeperv1.OptInScheduleAnnotation),
		timeZone: lookUp(annotations, tidekeeperv1.OptInTimeZoneAnnotation),
	}
	// Each by itself: the other half may be what somebody has set by hand.
	if w.schedule != nil {
		if _, err := schedule.Parse(*w.schedule, ""); err != nil {
			return wish{}, fmt.Errorf("%s: %w", tidekeeperv1.OptInScheduleAnnotation, err)
		}
	}
	if w.timeZone != nil {
		if *w.timeZone == "" {
			return wish{}, errors.New(tidekeeperv1.OptInTimeZoneAnnotation + " is empty: write a name from the IANA database, such as Europe/Berlin, or take it away")
		}
		if _, err := schedule.Parse("@daily", *w.timeZone); err != nil {
			return wish{}, fmt.Errorf("%s: %w", tidekeeperv1.OptInTimeZoneAnnotation, err)
		}
	}
	return w, nil
}

func lookUp(annotations map[string]string, key string) *string {
	if value, ok := annotations[key]; ok {
		return &value
	}
	return nil
}
