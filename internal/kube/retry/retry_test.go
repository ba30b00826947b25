// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"testing"
	"time"
)

// What fails for an hour is tried at most two hundred times, and then again within half
// a minute.
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
