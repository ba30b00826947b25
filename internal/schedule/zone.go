// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"regexp"
	"sync"
	"time"
	_ "time/tzdata" // The container image contains only the binary, so the time zone database must be embedded.
)

// zones caches each requested time zone by name. A zone is a table of a few kilobytes, which ten
// thousand schedules may share. Only existing zones are cached, so the cache cannot grow beyond
// their number.
var zones sync.Map // of *time.Location by name

// zoneName matches the names in the tz database
// (https://data.iana.org/time-zones/theory.html#naming), with digits and + for old names such as
// Etc/GMT+1. It prevents other paths from being passed to time.LoadLocation.
var zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*){0,2}$`)

// notZones matches files that may exist in a machine's zone directory but are not zones of the
// database: links to the machine's own setting, and zones that count leap seconds, which Go's time
// package does not support.
var notZones = regexp.MustCompile(`(?i)^(local|localtime|posixrules|factory|posix/.*|right/.*)$`)

// Zone returns the time zone with the given IANA name; UTC for "". The error is suitable for users.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if !zoneName.MatchString(name) || notZones.MatchString(name) {
		return nil, unknownZone(name)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknownZone(name) // The message of err would include the paths in which Go searched for the zone.
	}
	known, _ := zones.LoadOrStore(name, location)
	return known.(*time.Location), nil
}

func unknownZone(name string) error {
	return fmt.Errorf("unknown time zone %.64q: write a name from the IANA database, such as Europe/Berlin or UTC", name)
}

// stretch is a period in which the offset of a time zone from UTC does not change. The offset may
// also stay the same from a stretch to the next.
type stretch struct {
	start  time.Time     // inclusive; zero if there is no start
	end    time.Time     // exclusive; zero if there is no end
	offset time.Duration // the clock's time minus UTC
}

func stretchAt(location *time.Location, t time.Time) stretch {
	t = t.In(location)
	_, seconds := t.Zone()
	start, end := t.ZoneBounds()
	// From 2038 at the latest, the clock changes of a zone follow a rule, and Go 1.26 treats each
	// year as a stretch of 365 days. On 31 December of a leap year, the stretch therefore ends in
	// the past, and a walk from stretch to stretch would never end.
	if !end.IsZero() && !end.After(t) {
		end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return stretch{start: start.UTC(), end: end.UTC(), offset: time.Duration(seconds) * time.Second}
}

// maxShift is larger than the difference between the offsets of any two zones.
const maxShift = 36 * time.Hour

// shown returns the latest time that the zone's clock has shown up to and including t. In the
// autumn overlap, it differs from the time that the clock shows at t. Like all wall clock times in
// this package, it is represented as if it were UTC.
func shown(location *time.Location, t time.Time) time.Time {
	at := stretchAt(location, t)
	latest := t.Add(at.offset)
	for !at.start.IsZero() && at.start.After(t.Add(-maxShift)) {
		at = stretchAt(location, at.start.Add(-1))
		if last := at.end.Add(at.offset - 1); last.After(latest) {
			latest = last
		}
	}
	return latest
}

// reached returns the first instant at which the zone's clock shows the given wall clock time. If
// that time is in a gap, it returns the end of the gap.
func reached(location *time.Location, wall time.Time) time.Time {
	at := stretchAt(location, wall.Add(-maxShift))
	for !at.end.IsZero() && !at.end.Add(at.offset).After(wall) {
		at = stretchAt(location, at.end)
	}
	t := wall.Add(-at.offset)
	if !at.start.IsZero() && t.Before(at.start) {
		return at.start
	}
	return t
}
