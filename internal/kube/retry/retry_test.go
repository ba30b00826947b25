// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"testing"
	"time"
)

// TestAnHour checks that a request that fails for an hour is tried at most 200 times, and that its
// retries are at most half a minute apart at the end of the hour.
func TestAnHour(t *testing.T) {
	limiter := Limiter[string]()
	tries := 0
	last := time.Duration(0)
	for passed := time.Duration(0); passed < time.Hour; passed += last {
		last = limiter.When("pool")
		tries++
	}
	if tries > 200 || last > 30*time.Second {
		t.Errorf("in an hour it was tried %d times, at last every %s", tries, last)
	}
	limiter.Forget("pool")
	if first := limiter.When("pool"); first > 10*time.Millisecond {
		t.Errorf("after a success a failure waits %s", first)
	}
}
