// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Further suites run while the processors are idle, because many suites wait most of the time.
const (
	// mostSpare is the number of suites that may run in addition to the number of jobs.
	mostSpare = 2
	// enoughIdle is the share of the processor time that must have been idle.
	enoughIdle = 0.35
	// spareEvery is the time between two looks at the processors, and thus also the time that a new
	// suite has to show how busy it keeps them.
	spareEvery = 15 * time.Second
)

// processorTime is the time that all processors have been idle, and in total, in arbitrary units
// since an arbitrary time.
type processorTime struct{ idle, total uint64 }

// readProcessorTime reads the processor time of this machine. It fails on systems without /proc/stat.
func readProcessorTime() (processorTime, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTime{}, err
	}
	return parseProcessorTime(content)
}

// parseProcessorTime parses /proc/stat. Its first line has the times of all processors: user, nice,
// system, idle, iowait and others. Waiting for a disk counts as busy.
func parseProcessorTime(stat []byte) (t processorTime, err error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 5 || string(fields[0]) != "cpu" {
		return t, fmt.Errorf("/proc/stat begins with %q, want the times of all processors", line)
	}
	for i, field := range fields[1:] {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return t, fmt.Errorf("/proc/stat: %w", err)
		}
		if t.total += n; i == 3 {
			t.idle = n
		}
	}
	return t, nil
}

// areIdle reports whether the processors were mostly idle between two times.
func areIdle(before, now processorTime) bool {
	return now.total > before.total && float64(now.idle-before.idle) >= enoughIdle*float64(now.total-before.total)
}

// runSpare starts a further suite at each look at which the processors were mostly idle since the
// last look. It returns after the channel over is closed and these suites have ended.
func (r *runner) runSpare(ctx context.Context, ready *queue, look <-chan time.Time, over <-chan struct{}, read func() (processorTime, error)) {
	var working sync.WaitGroup
	defer working.Wait()
	slots := make(chan struct{}, mostSpare)
	before, err := read()
	for err == nil {
		select {
		case <-over:
			return
		case <-look:
		}
		last := before
		if before, err = read(); err != nil || !areIdle(last, before) || len(slots) == mostSpare {
			continue
		}
		s, found := ready.poll()
		if !found {
			continue
		}
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			r.runSuite(ctx, s)
		})
	}
}
