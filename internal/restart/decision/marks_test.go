// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"
)

// FuzzNotBefore checks that the value of an annotation, which any client may write, counts for a
// tick only if it is a time that is not before the tick and not in the future, except for clock
// skew.
func FuzzNotBefore(f *testing.F) {
	for _, seed := range []string{"", "2026-06-10T03:00:00Z", "2026-06-10T05:00:00+02:00", "2026-06-10T02:59:59Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "now", "2026-06-10T03:00:00.5Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tick, now := at("03:00:00"), at("03:10:00")
		got, ok := notBefore(tick, text, now)
		if ok && (got.Before(tick) || got.After(now.Add(clockSkew))) {
			t.Errorf("%q serves the tick, as %s", text, got)
		}
		if want, err := time.Parse(time.RFC3339, text); err == nil && !want.Before(tick) && !want.After(now.Add(clockSkew)) && !ok {
			t.Errorf("%q does not serve the tick", text)
		}
	})
}
