// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// A day of 10,000 objects in 100 namespaces: all at the same time each night, over the night,
// or every hour.
func BenchmarkRun(b *testing.B) {
	for name, schedule := range map[string]func(i int) string{
		"at once":    func(int) string { return "0 3 * * *" },
		"over hours": func(i int) string { return fmt.Sprintf("%d %d * * *", i%60, i/60%6) },
		"hourly":     func(i int) string { return fmt.Sprintf("%d * * * *", i%60) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				in := Input{
					Limits: Limits{MaxConcurrent: 20, NamespaceShare: 50, SlotAge: 10 * time.Minute}, AssumedDuration: time.Minute,
					Now: at("00:00:00"), Until: at("00:00:00").AddDate(0, 0, 1), MostListed: 100_000,
				}
				for i := range 10_000 {
					in.Restarts = append(in.Restarts, nightly(fmt.Sprintf("team-%02d", i%100), fmt.Sprintf("web-%04d", i), took(time.Minute),
						spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Schedule = tidekeeperv1.CronExpression(schedule(i)) })))
				}
				b.StartTimer()
				f := Run(b.Context(), in)
				b.ReportMetric(float64(f.Summary.Started), "started/op")
				b.ReportMetric(float64(f.Summary.Missed), "missed/op")
			}
		})
	}
}
