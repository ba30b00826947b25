// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"fmt"
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// setBack describes, for an event, which changes by another client the decision reverts, and which
// annotation to change instead. It returns "" if no changes are reverted. The event is needed
// because the other client's write has succeeded, so no error shows the client that the change was
// reverted.
func setBack(d *decision) string {
	if d.action != update {
		return ""
	}
	last := recordOn(d.existing)
	if last == nil {
		return ""
	}
	spec, applied := &d.existing.Spec, d.apply.Spec
	var said []string
	add := func(field, is, was, annotation string) {
		said = append(said, fmt.Sprintf("%s %s was reverted to %s, the value of the annotation %s of %s %s: change or remove the annotation",
			field, is, was, annotation, *applied.TargetRef.Kind, *applied.TargetRef.Name))
	}
	if s := applied.Schedule; s != nil && last.Schedule != nil && string(*s) == *last.Schedule && *s != spec.Schedule {
		add("schedule", fmt.Sprintf("%q", spec.Schedule), fmt.Sprintf("%q", *s), tidekeeperv1.OptInScheduleAnnotation)
	}
	if z := applied.TimeZone; z != nil && last.TimeZone != nil && *z == *last.TimeZone && *z != spec.TimeZone {
		add("timeZone", fmt.Sprintf("%q", spec.TimeZone), fmt.Sprintf("%q", *z), tidekeeperv1.OptInTimeZoneAnnotation)
	}
	if a := applied.MaxPodAgeSeconds; a != nil && last.MaxPodAgeSeconds != nil && *a == *last.MaxPodAgeSeconds && *a != spec.MaxPodAgeSeconds {
		add("maxPodAgeSeconds", fmt.Sprint(spec.MaxPodAgeSeconds), fmt.Sprint(*a), tidekeeperv1.OptInMaxPodAgeAnnotation)
	}
	if is := spec.TargetRef; is.Kind != *applied.TargetRef.Kind || is.Name != *applied.TargetRef.Name {
		add("targetRef", is.Kind+" "+is.Name, *applied.TargetRef.Kind+" "+*applied.TargetRef.Name, tidekeeperv1.OptInAnnotation)
	}
	return strings.Join(said, "; ")
}
