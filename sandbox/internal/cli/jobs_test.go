// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

func TestRoomFor(t *testing.T) {
	for _, tc := range []struct {
		gib          uint64
		others, want int
	}{{23, 2, 21}, {3, 2, 1}, {1, 2, 1}, {0, 0, 1}, {4, 0, 4}, {1 << 32, 2, 998}} {
		if got := roomFor(tc.gib*perSandbox, tc.others); got != tc.want {
			t.Errorf("%d GiB beside %d others: %d sandboxes, want %d", tc.gib, tc.others, got, tc.want)
		}
	}
}
