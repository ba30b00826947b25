// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// admission decides when another suite or part of a suite may begin: at once while none runs, and
// otherwise when the processors were idle for a share of some time. Three suites keep two fast
// processors busy without slowing each other down. On a slow machine one suite is enough, and three
// would wait for each other until requests time out and are repeated.
type admission struct {
	// times reads the counters of the processors. If it is nil or fails, suites begin at once.
	times func() (processorTimes, error)
	// until is the time from which nothing waits any longer, because it begins too late anyway, or
	// zero.
	until time.Time

	turn     sync.Mutex
	admitted time.Time // when a suite or a part began last
	running  atomic.Int32
}

const (
	// enoughIdle is the share of the processors that must have been idle. Suites wait now and then and
	// are busy at other times: with a smaller share, too many begin while some of them wait.
	enoughIdle = 0.35
	// suiteWindow is the time over which that is measured before a suite begins.
	suiteWindow = 15 * time.Second
	// settling is the time that what was admitted last has to get busy before that time begins, or the
	// window if that is shorter.
	settling = 5 * time.Second
)

// newAdmission returns the admission of this machine.
func newAdmission() *admission { return &admission{times: readProcessorTimes} }

// enter waits until a suite or a part may begin, or the context has ended. The idle share is measured
// over the given window. The caller must call leave when the suite or the part has ended.
func (a *admission) enter(ctx context.Context, window time.Duration) {
	a.turn.Lock()
	defer a.turn.Unlock()
	for a.times != nil && a.running.Load() > 0 && !a.over() {
		if settles := a.admitted.Add(min(settling, window)); !a.wait(ctx, time.Until(settles)) {
			break
		}
		before, err := a.times()
		if err != nil || !a.wait(ctx, window) {
			break
		}
		if now, err := a.times(); err != nil || now.idleSince(before) >= enoughIdle {
			break
		}
	}
	a.admitted = time.Now()
	a.running.Add(1)
}

// over reports whether nothing waits any longer.
func (a *admission) over() bool { return !a.until.IsZero() && !time.Now().Before(a.until) }

// wait waits for the given time. It returns false early if no suite runs any longer, nothing waits any
// longer, or the context ends.
func (a *admission) wait(ctx context.Context, window time.Duration) bool {
	if window <= 0 {
		return true
	}
	over := time.NewTimer(window)
	defer over.Stop()
	poll := time.NewTicker(min(max(window/20, time.Microsecond), time.Second))
	defer poll.Stop()
	for {
		select {
		case <-over.C:
			return true
		case <-poll.C:
			if a.running.Load() == 0 || a.over() {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// leave notes that a suite has ended.
func (a *admission) leave() { a.running.Add(-1) }

// processorTimes are the counters in the first line of /proc/stat, in ticks.
type processorTimes struct {
	idle, total uint64
}

// parseProcessorTimes parses the content of /proc/stat. Time in which a processor waits for a
// disk, and time of processes with a low priority, such as the linters beside the tests in CI, count as idle.
// Time that other virtual machines took counts as busy.
func parseProcessorTimes(stat string) (processorTimes, error) {
	line, _, _ := strings.Cut(stat, "\n")
	var user, nice, system, idle, disk, interrupts, soft, stolen uint64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &disk, &interrupts, &soft, &stolen); err != nil {
		return processorTimes{}, fmt.Errorf("the first line of /proc/stat is %q: %w", line, err)
	}
	return processorTimes{idle: nice + idle + disk, total: user + nice + system + idle + disk + interrupts + soft + stolen}, nil
}

// idleSince returns the share of the time since an earlier measurement in which the processors were
// idle, from 0 to 1. It returns 0 if no time has passed.
func (t processorTimes) idleSince(before processorTimes) float64 {
	if t.total <= before.total || t.idle < before.idle {
		return 0
	}
	return float64(t.idle-before.idle) / float64(t.total-before.total)
}

func readProcessorTimes() (processorTimes, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTimes{}, err
	}
	return parseProcessorTimes(string(stat))
}
