// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// hourly returns the input of a one-day forecast for the given number of ScheduledRestarts, each of
// which is due once an hour. The budget grows with their number, but is far too small, so that most
// ticks wait and are missed.
func hourly(objects int) Input {
	in := Input{
		Limits: Limits{MaxConcurrent: objects / 150, NamespaceShare: 50, SlotAge: 10 * time.Minute}, AssumedDuration: time.Minute,
		Now: at("00:00:00"), Until: at("00:00:00").AddDate(0, 0, 1), MostListed: 100_000,
	}
	for i := range objects {
		in.Restarts = append(in.Restarts, nightly(fmt.Sprintf("team-%02d", i%100), fmt.Sprintf("web-%04d", i), took(time.Minute),
			spec(func(s *tidekeeperv1.ScheduledRestartSpec) {
				s.Schedule = tidekeeperv1.CronExpression(fmt.Sprintf("%d * * * *", i%60))
			})))
	}
	return in
}

// TestATickCostsLittle limits the allocations per tick. A forecast for ten thousand
// ScheduledRestarts has hundreds of thousands of ticks, and copies of unchanged data once took two
// thirds of its time.
func TestATickCostsLittle(t *testing.T) {
	const objects, mostAllocations, mostBytes = 1000, 46, 6500
	in := hourly(objects)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := Run(t.Context(), in)
	runtime.ReadMemStats(&after)
	ticks := uint64(f.Summary.Started + f.Summary.Missed + f.Summary.Skipped)
	if ticks < 20*objects {
		t.Fatalf("%d ticks of %d objects: %+v", ticks, objects, f.Summary)
	}
	if allocations, bytes := (after.Mallocs-before.Mallocs)/ticks, (after.TotalAlloc-before.TotalAlloc)/ticks; allocations > mostAllocations || bytes > mostBytes {
		t.Errorf("each of %d ticks takes %d allocations of %d bytes, want at most %d of %d", ticks, allocations, bytes, mostAllocations, mostBytes)
	}
}

// BenchmarkRun measures a one-day forecast for 10,000 ScheduledRestarts in 100 namespaces. They
// restart nightly at the same time, nightly at different times, or every hour.
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
