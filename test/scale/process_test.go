// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// forEach calls `do` for each number from 0 to count-1, in the given number of goroutines.
func forEach(t *testing.T, workers, count int, do func(i int) error) {
	t.Helper()
	queue := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range queue {
				if err := do(i); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range count {
		queue <- i
	}
	close(queue)
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// cpuTime returns a process's CPU time so far, in steps of 10 ms.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	total := time.Duration(0)
	// utime and stime are fields 14 and 15, in hundredths of a second; see proc_pid_stat(5).
	for _, field := range processStat(t, pid)[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		total += time.Duration(ticks) * 10 * time.Millisecond
	}
	return total
}

// processStat returns the fields of /proc/PID/stat, beginning with the third.
func processStat(t *testing.T, pid int) []string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The second field is the name of the program, in parentheses.
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.Fields(rest)
}
