// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Closed is the part of a node's ownership annotation about NoExecute taints for which the node is
// being emptied. It maps pool names and taint keys to the times, in whole seconds, at which the
// pools closed the node to new pods.
type Closed map[string]map[string]time.Time

// ParseClosed returns the times at which pools closed a node to new pods. text is the value of the
// node's ownership annotation, which may be arbitrary. A time that cannot be parsed is omitted, so
// that the pool closes the node again. The result is nil if there are no times.
func ParseClosed(text string) Closed { return Read(text).Closed }

// With records the time at which the pool closed the node to new pods for its NoExecute taint with
// the given key. It returns the changed map, which is a new map if c is nil.
func (c Closed) With(pool, key string, since time.Time) Closed {
	if c == nil {
		c = Closed{}
	}
	if c[pool] == nil {
		c[pool] = map[string]time.Time{}
	}
	c[pool][key] = since.UTC().Truncate(time.Second)
	return c
}

// closedOf returns the times at which a pool closed the node to new pods, by taint key. It omits
// times that cannot be parsed, and returns nil if there are no others.
func closedOf(s *setting.Stored) map[string]time.Time {
	var times map[string]time.Time
	for key, text := range s.Closed {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			continue
		}
		if times == nil {
			times = map[string]time.Time{}
		}
		times[key] = since.UTC().Truncate(time.Second)
	}
	return times
}

// storedTimes formats times as in RFC 3339, in UTC. The given and the returned map are keyed by
// taint key.
func storedTimes(times map[string]time.Time) map[string]string {
	texts := make(map[string]string, len(times))
	for key, since := range times {
		texts[key] = since.UTC().Format(time.RFC3339)
	}
	return texts
}
