// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"
)

func TestEvictionRetry(t *testing.T) {
	for refusedFor, want := range map[time.Duration]time.Duration{
		0: time.Second, 3 * time.Second: time.Second, 20 * time.Second: 5 * time.Second, 4 * time.Minute: time.Minute, 24 * time.Hour: time.Minute,
	} {
		if got := EvictionRetry(refusedFor, time.Second); got != want {
			t.Errorf("refused for %s: again after %s, want %s", refusedFor, got, want)
		}
	}
}
