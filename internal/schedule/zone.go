// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"regexp"
	"sync"
	"time"
	_ "time/tzdata" // The image has no file but the binary: the zones must be in it.
)

// zones has each zone that was asked for, once. A zone is a table of some
// kilobytes, and ten thousand schedules may be in the same one. Only zones that
// exist get in, so it cannot grow beyond their number.
var zones sync.Map // of *time.Location by name

// zoneName is what names in the tz database are made of
// (https://data.iana.org/time-zones/theory.html#naming), digits and + for the
// old ones such as Etc/GMT+1. It keeps paths away from time.LoadLocation.
var zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*){0,2}$`)

// notZones are files that may lie beside the zones on a machine, and mean there
// whatever its owner set, or count leap seconds, which Go's clock does not.
var notZones = regexp.MustCompile(`(?i)^(local|localtime|posixrules|factory|posix/.*|right/.*)$`)

// loadZone returns the zone of that name. "" is UTC.
func loadZone(name string) (*time.Location, error) {
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
		return nil, unknownZone(name) // err would add the paths where Go has looked
	}
	known, _ := zones.LoadOrStore(name, location)
	return known.(*time.Location), nil
}

func unknownZone(name string) error {
	return fmt.Errorf("unknown time zone %.64q: write a name from the IANA database, such as Europe/Berlin or UTC", name)
}

// stretch is a time in which a zone's clock runs without being changed. The next
// one may have the same offset.
type stretch struct {
	start  time.Time     // inclusive; zero: since ever
	end    time.Time     // exclusive; zero: for ever
	offset time.Duration // what the clock shows, less UTC
}

func stretchAt(location *time.Location, t time.Time) stretch {
	t = t.In(location)
	_, seconds := t.Zone()
	start, end := t.ZoneBounds()
	// Where a zone goes by its rule, from 2038 at the latest, Go 1.26 takes each
	// year for a stretch of its own and each for one of 365 days: on 31 December of
	// a leap year the end is past. To walk from there to there would never end.
	if !end.IsZero() && !end.After(t) {
		end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return stretch{start: start.UTC(), end: end.UTC(), offset: time.Duration(seconds) * time.Second}
}

// maxShift is more than any two offsets, of any zones at any time, are apart.
const maxShift = 36 * time.Hour

// shown returns the latest time that the zone's clock has shown until t, t
// included. In the autumn overlap that is not what it shows at t. As all wall
// times here, it is told as if it were UTC.
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

// reached returns the first instant at which the zone's clock shows the wall
// time or, if that falls into a gap, a later one: then it is the gap's end.
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
