// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// cron parses a schedule of the original operator, whose cron library also accepts a time zone
// before the schedule, and a field for seconds in front of the five fields. cron returns the five
// fields, or a word such as @daily, and the time zone. zone is "" if the schedule has none. If the
// schedule cannot be converted, cron adds a remark to r, and ok is false.
func cron(text string, r *remarks) (expression, zone string, ok bool) {
	const field = "spec.schedule"
	words := strings.Fields(text)
	if len(words) > 0 {
		for _, prefix := range []string{"CRON_TZ=", "TZ="} {
			if name, found := strings.CutPrefix(words[0], prefix); found {
				zone, words = name, words[1:]
				break
			}
		}
	}
	if len(words) == 6 && words[0] == "0" {
		words = words[1:]
		r.note(field, fmt.Sprintf("the first of the six fields of %.64q is the second 0", text), "")
	}
	if len(words) == 0 {
		r.leftOut(field, "is missing, so that nothing was ever restarted", "set a schedule, such as 0 0 * * *")
		return "", "", false
	}
	expression = strings.Join(words, " ")
	_, err := schedule.Parse(expression, zone)
	if err == nil && len(expression) > tidekeeperv1.MaxScheduleLength {
		err = fmt.Errorf("has more than %d characters", tidekeeperv1.MaxScheduleLength)
	}
	if err != nil {
		r.leftOut(field, err.Error(), "change it and convert it again")
		return "", "", false
	}
	return expression, zone, true
}
