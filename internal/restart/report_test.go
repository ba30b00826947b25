// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestInvalidRequestIsRememberedInPart checks that an invalid restart request is reported only once
// until it changes, and that only a prefix of it is kept in memory, since tenants control its
// length.
func TestInvalidRequestIsRememberedInPart(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &reporter{recorder: recorder, clock: clocktesting.NewFakePassiveClock(time.Now()), memories: newMemories()}
	report := func(value string) int {
		restart := &tidekeeperv1.ScheduledRestart{}
		restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: value}
		r.reportInvalidRequest(testKey, restart)
		r.memories.with(testKey, func(m *memory) {
			if len(m.reportedRequest) > comparedRequest {
				t.Errorf("%d bytes of the request are remembered", len(m.reportedRequest))
			}
		})
		return len(recorder.Events)
	}
	long := strings.Repeat("now", 100_000)
	if first, again, other, valid := report(long), report(long), report("soon"), report(""); first != 1 || again != 1 || other != 2 || valid != 2 {
		t.Errorf("there are %d, %d, %d and %d events, want 1, 1, 2 and 2", first, again, other, valid)
	}
}
